"""What the deployed functions ask beyond AWS, on this machine: the code host, and where the user pool is found.

All of it is told to the stack by the template's parameters, before there is a stack.
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
from local.github.app import API, create_app
from local.github.stand_in import StandIn

_METADATA = "/user-pool/openid-configuration"


class Outside:
    """The stand-in for GitHub, and a signpost to the user pool's metadata.

    A user pool of the local AWS calls itself by its address at AWS, and is not found there. Its own address is not
    known either before it is deployed: hence the signpost.
    """

    def __init__(self, root: Path, url: str) -> None:
        self.url = url
        self.github = StandIn(root)
        self.pool_url = ""
        """Where the deployed user pool is."""

        self._root = root

    @property
    def parameters(self) -> dict[str, str]:
        """What the template is deployed with."""
        return {
            "GithubApiUrl": f"{self.url}{API}",
            "GithubAppId": setup.APP_ID,
            "SignInMetadataUrl": f"{self.url}{_METADATA}",
        }

    @property
    def app_key(self) -> str:
        """The private key of the GitHub App, in PEM form."""
        return setup.key_file(self._root).read_text()

    @property
    def secrets(self) -> set[str]:
        """The lines of the App's key, and every token that the code host gave out."""
        lines = {line for line in self.app_key.splitlines() if not line.startswith("---")}
        shown = {request.headers.get("authorization", "") for request in self.github.requests}
        return lines | {header.partition(" ")[2] for header in shown} - {""}

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route(_METADATA, self._show_the_way), Mount("", create_app(self.github))])

    async def _show_the_way(self, _: Request) -> RedirectResponse:
        return RedirectResponse(f"{self.pool_url}/.well-known/openid-configuration")


@contextmanager
def running_outside(root: Path) -> Iterator[Outside]:
    """Serves it, with the demo repository, while the block runs. Raises GitFailed where git is not installed."""
    setup.prepare(root)
    listener = socket.create_server(("127.0.0.1", 0))
    outside = Outside(root, f"http://127.0.0.1:{listener.getsockname()[1]}")
    # The Date header is the stand-in's own.
    config = uvicorn.Config(
        outside.app, log_level="critical", lifespan="off", date_header=False, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield outside
    finally:
        server.should_exit = True
        thread.join(10)
