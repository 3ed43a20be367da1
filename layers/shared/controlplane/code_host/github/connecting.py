"""Connecting repositories: those that installations of our App grant access to, and the people who may connect them.

A person's token is used within one request. It is never stored.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from controlplane.code_host.github import app_pages, client, errors
from controlplane.code_host.github.app_auth import AppAuth, read_client_secret
from controlplane.code_host.github.transport import Deadline, Request, RetryPolicy, Transport
from controlplane.code_host.items import HostedRepository
from controlplane.platform.core import deadline
from controlplane.platform.core.settings import settings

_GRANTED = "/installation/repositories"
_PAGE_SIZE = 100
_SECONDS = 60
# More installations or repositories than these aren't listed to a person. One page is one request.
_MOST_PAGES = 3
# One request of a browser makes all of these calls. The request's budget ends them earlier.
_POLICY = RetryPolicy(connect_timeout_seconds=2, read_timeout_seconds=4, total_timeout_seconds=10, max_attempts=2)

_INSTALLATION = "/app/installations/{installation_id}"
_INSTALLATIONS = "/user/installations"
_REPOSITORIES = "/user/installations/{installation_id}/repositories"
_TOKENS = "/login/oauth/access_token"  # nosec B105 (a path)


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
        response.require(200, {401: errors.HostUnavailable, 403: errors.AccessLost, 404: errors.AccessLost})
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


def check_installation(installation_id: int) -> None:
    """Raises InstallationGone if it belongs to another App or is suspended. Raises the common errors, too."""
    transport, auth = _app()
    url = transport.url(_INSTALLATION.format(installation_id=installation_id))
    with deadline.spending():
        response = auth.send_as_app("GET", _INSTALLATION, url, _deadline())
    response.require(200, {404: errors.InstallationGone})
    if response.read(lambda content: content["suspended_at"] is not None):
        raise errors.InstallationGone(reason="suspended", **response.context)


class GrantedRepository(NamedTuple):
    """A repository that a person can write to. homepage: the website that its page on the code host names, or empty."""

    hosted: HostedRepository
    homepage: str


class Person:
    """A person of the code host, as seen by our App."""

    def __init__(self, transport: Transport, token: str) -> None:
        self._transport = transport
        self._authorization = f"Bearer {token}"

    def list_installations(self) -> list[int]:
        """Returns the IDs of the App's installations that the person has access to. Raises AccessLost."""
        return [it for page in self._pages(_INSTALLATIONS, _INSTALLATIONS, _to_installation_ids) for it in page]

    def list_repositories(self, installation_id: int) -> list[GrantedRepository]:
        """Returns the installation's repositories that the person can write to. Raises AccessLost."""
        path, read = _REPOSITORIES.format(installation_id=installation_id), partial(_to_writable, installation_id)
        return [it for page in self._pages(_REPOSITORIES, path, read) for it in page]

    def _pages[T](self, operation: str, path: str, read: Callable[[Any], tuple[int, list[T]]]) -> Iterator[list[T]]:
        for number in range(1, _MOST_PAGES + 1):
            url = self._transport.url(path, per_page=str(_PAGE_SIZE), page=str(number))
            with deadline.spending():
                response = self._transport.send_with_retries(
                    Request("GET", operation, url, self._authorization), _deadline()
                )
            response.require(200, dict.fromkeys((401, 403, 404), errors.AccessLost))
            total, entries = response.read(read)
            yield entries
            if number * _PAGE_SIZE >= total:
                return


def identify(code: str) -> Person:
    """Returns the person who the code was issued to. A code works once. Raises CodeRejected, AppNotConfigured."""
    if not settings.github_client_id:
        raise errors.AppNotConfigured
    transport, _ = _app()
    with deadline.spending():
        body = {"client_id": settings.github_client_id, "client_secret": read_client_secret(), "code": code}
        request = Request("POST", _TOKENS, app_pages.base_url() + _TOKENS, "", body, accept="application/json")
        response = transport.send_once(request, _deadline())
    # GitHub reports a rejected code with status 200.
    token = response.content.get("access_token") if isinstance(response.content, dict) else None
    if response.status != 200 or not isinstance(token, str) or not token:
        raise errors.CodeRejected(**response.context)
    return Person(transport, token)


def _deadline() -> Deadline:
    return Deadline(deadline.bounded(_POLICY.total_timeout_seconds) or _POLICY.total_timeout_seconds)


@cache
def _app() -> tuple[Transport, AppAuth]:
    transport = Transport(settings.github_api_url, _POLICY, time.sleep)
    return transport, AppAuth(transport, settings.github_app_id)


def _to_installation_ids(content: Any) -> tuple[int, list[int]]:
    return int(content["total_count"]), [int(it["id"]) for it in content["installations"]]


def _to_writable(installation_id: int, content: Any) -> tuple[int, list[GrantedRepository]]:
    listed = [it for it in content["repositories"] if it.get("permissions", {}).get("push") and not it["archived"]]
    granted = [GrantedRepository(to_hosted(it, installation_id), it.get("homepage") or "") for it in listed]
    return int(content["total_count"]), granted
