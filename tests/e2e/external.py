"""Services outside AWS that the deployed functions call, run locally: the code host and the user pool's metadata.

The stack gets their addresses from the template's parameters, before it is deployed.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from local.github import setup
from local.github.app import create_app
from local.github.host import API
from local.github.webhooks import Webhooks
from tests.support.github_faults import FaultyStandIn

_METADATA = "/user-pool/openid-configuration"


class ExternalServices:
    """The stand-in for GitHub, and a redirect to the user pool's metadata.

    A user pool of the local AWS reports an address at AWS, where it can't be reached. Its local address isn't known
    before the deployment either, so the redirect has a fixed address.
    """

    def __init__(self, root: Path, url: str) -> None:
        self.url = url
        self.github = FaultyStandIn(root)
        self.webhooks = Webhooks()
        self.pool_url = ""
        """Where the deployed user pool is."""

        self._root = root

    @property
    def parameters(self) -> dict[str, str]:
        """Returns the parameters that the template is deployed with."""
        return {
            "GithubApiUrl": f"{self.url}{API}",
            "GithubAppId": setup.APP_ID,
            "GithubAppSlug": setup.APP_SLUG,
            "GithubClientId": setup.CLIENT_ID,
            "SignInMetadataUrl": f"{self.url}{_METADATA}",  # of versions without Settings
            "Settings": f"SIGN_IN_METADATA_URL={self.url}{_METADATA}",
        }

    @property
    def app_key(self) -> str:
        """Returns the GitHub App's private key in PEM format."""
        return setup.key_file(self._root).read_text()

    @property
    def client_secret(self) -> str:
        """Returns the GitHub App's client secret."""
        return setup.client_secret_file(self._root).read_text()

    @property
    def secrets(self) -> set[str]:
        """Returns the lines of the App's key, its other secrets, and every token that the code host issued."""
        lines = {line for line in self.app_key.splitlines() if not line.startswith("---")}
        shown = {request.headers.get("authorization", "") for request in self.github.requests}
        return (
            lines | {self.client_secret, self.webhooks.secret} | {header.partition(" ")[2] for header in shown} - {""}
        )

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[Route(_METADATA, self._show_the_way), Mount("", create_app(self.github, self.webhooks))]
        )

    async def _show_the_way(self, _: Request) -> RedirectResponse:
        return RedirectResponse(f"{self.pool_url}/.well-known/openid-configuration")


@contextmanager
def running_services(root: Path) -> Iterator[ExternalServices]:
    """Serves them, with the demo repository, while the block runs. Raises GitFailed if git isn't installed."""
    setup.prepare(root)
    listener = socket.create_server(("127.0.0.1", 0))
    external = ExternalServices(root, f"http://127.0.0.1:{listener.getsockname()[1]}")
    # The stand-in sets its own Date header.
    config = uvicorn.Config(
        external.app, log_level="critical", lifespan="off", date_header=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield external
    finally:
        server.should_exit = True
        thread.join(10)
