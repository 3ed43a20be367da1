"""An installation of our App: the repositories that it grants access to."""

from collections.abc import Iterator
from typing import Any

from controlplane.code_host.github import client
from controlplane.code_host.github.app_auth import AppAuth
from controlplane.code_host.github.errors import AccessLost, HostUnavailable
from controlplane.code_host.github.transport import Deadline, Request, Transport
from controlplane.code_host.items import HostedRepository

_GRANTED = "/installation/repositories"
_PAGE_SIZE = 100
_SECONDS = 60


def list_granted(installation_id: int) -> list[HostedRepository]:
    """Returns all repositories of the installation. Raises AccessLost if it was removed or is suspended."""
    transport, auth = client.get_transport()
    return list(_list(transport, auth, installation_id))


def _list(transport: Transport, auth: AppAuth, installation_id: int) -> Iterator[HostedRepository]:
    deadline = Deadline(_SECONDS)
    auth.quotas.require(installation_id)
    authorization = auth.metadata_authorization(installation_id, deadline)
    page, seen = 1, 0
    while True:
        url = transport.url(_GRANTED, per_page=str(_PAGE_SIZE), page=str(page))
        response = transport.send_with_retries(Request("GET", _GRANTED, url, authorization), deadline)
        auth.quotas.note(installation_id, response)
        # 401 is of a new token, so the next one tells whether access is lost.
        response.require(200, {401: HostUnavailable, 403: AccessLost, 404: AccessLost})
        found = response.read(lambda content: [to_hosted(it, installation_id) for it in content["repositories"]])
        total = response.read(lambda content: int(content["total_count"]))
        yield from found
        page, seen = page + 1, seen + len(found)
        if not found or seen >= total:
            return


def to_hosted(content: Any, installation_id: int) -> HostedRepository:
    """Returns a repository that an installation grants access to."""
    return HostedRepository(
        hosted_id=int(content["id"]),
        installation_id=installation_id,
        owner=content["owner"]["login"],
        name=content["name"],
        default_branch=content["default_branch"],
        html_url=content["html_url"],
        visibility=content.get("visibility") or ("private" if content["private"] else "public"),
    )
