"""An installation of our App: the repositories that it grants access to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from controlplane.code_host.github import client
from controlplane.code_host.github.app_auth import AppAuth
from controlplane.code_host.github.errors import AccessLost, HostUnavailable, Refused
from controlplane.code_host.github.transport import Deadline, Request, Transport

_GRANTED = "/installation/repositories"
_PAGE_SIZE = 100
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class GrantedRepository:
    """A repository that an installation grants access to."""

    hosted_id: int
    owner: str
    name: str
    default_branch: str
    html_url: str
    visibility: str


def list_granted(installation_id: int) -> list[GrantedRepository]:
    """Returns all repositories of the installation. Raises AccessLost if it was removed or is suspended."""
    transport, auth = client.get_transport()
    return list(_list(transport, auth, installation_id))


def _list(transport: Transport, auth: AppAuth, installation_id: int) -> Iterator[GrantedRepository]:
    deadline = Deadline(_SECONDS)
    auth.quotas.require(installation_id)
    authorization = auth.metadata_authorization(installation_id, deadline)
    page, seen = 1, 0
    while True:
        url = transport.url(_GRANTED, per_page=str(_PAGE_SIZE), page=str(page))
        response = transport.send_with_retries(Request("GET", _GRANTED, url, authorization), deadline)
        auth.quotas.note(installation_id, response)
        context = {"operation": _GRANTED, "requestId": response.request_id}
        if response.status == 401:  # of a new token, so the next one tells whether access is lost
            raise HostUnavailable(reason="token rejected", status=401, **context)
        if response.status in (403, 404):
            raise AccessLost(status=response.status, **context)
        if response.status != 200:
            raise Refused(response.status, **context)
        try:
            found = [_to_granted(it) for it in response.content["repositories"]]
            total = int(response.content["total_count"])
        except (KeyError, TypeError, ValueError) as failure:
            raise HostUnavailable(reason="unexpected response", **context) from failure
        yield from found
        page, seen = page + 1, seen + len(found)
        if not found or seen >= total:
            return


def _to_granted(content: Any) -> GrantedRepository:
    return GrantedRepository(
        hosted_id=int(content["id"]),
        owner=content["owner"]["login"],
        name=content["name"],
        default_branch=content["default_branch"],
        html_url=content["html_url"],
        visibility=content.get("visibility") or ("private" if content["private"] else "public"),
    )
