"""Connects repositories: a person proves on GitHub which of them they may connect.

GitHub redirects back with the ID of an installation, which anyone can guess, and a code, which only the person gets.
So an installation is accepted only if it belongs to our App and GitHub lists it for the person who redeemed the code.
Only repositories that this person can write to are offered. The offers aren't stored: the page contains
them, signed for the session.
"""

import base64
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, NamedTuple

from controlplane.code_host import installations
from controlplane.code_host.github import app_pages, connecting
from controlplane.code_host.github.connecting import GrantedRepository, Person
from controlplane.code_host.github.errors import AccessLost, CodeHostError, CodeRejected, InstallationGone
from controlplane.code_host.items import HostedRepository
from controlplane.platform.core import clock, ids, keyring
from controlplane.platform.core.errors import Forbidden, InvalidPayload, NotFound, ServiceUnavailable
from controlplane.platform.core.observability import logger
from controlplane.platform.core.tokens import digest
from controlplane.platform.core.urls import dashboard_base_url

STATE_SECONDS = 3_600
_MOST_INSTALLATIONS = 5
# A form can have 64 KiB, and base64 makes this a third longer.
_MOST_OFFERED_BYTES = 40_000
# The purposes of the key ring's digests.
_STATE, _OFFERS = "state of a GitHub callback", "offered repositories"


class GithubOff(NotFound):
    message = "Repositories can't be connected here. Ask {operator} to connect them."


class CallbackLost(InvalidPayload):
    """The callback or the form wasn't made for this session, was used before, or has expired."""

    title = "This page of GitHub has expired"
    message = (
        "This page of GitHub wasn't opened in this session, was used before, or is older than an hour. Open the "
        "organization's repositories and start again."
    )


class NoAccessOnGithub(Forbidden):
    title = "You have no access on GitHub"
    message = (
        "GitHub says that you don't have access to this installation, or that it was removed. Sign in to GitHub with "
        "the account that installed the app, then start again."
    )


class NotIdentified(InvalidPayload):
    message = "GitHub didn't confirm who you are. Open the organization's repositories and start again."


class GithubUnavailable(ServiceUnavailable):
    message = "GitHub is unavailable. Try again in a minute."


class State(NamedTuple):
    """A callback's state: the organization, the expiry, and the installation, 0 if it isn't known.

    digest: that of the state's text, by which it is used once.
    """

    organization_id: str
    until: int
    installation_id: int
    digest: str


class Offers(NamedTuple):
    """The repositories that a person may connect to an organization. `sealed` is the form's field."""

    repositories: list[GrantedRepository]
    sealed: str

    def choose(self, hosted_id: str) -> GrantedRepository:
        """Returns the offered repository with that ID. Raises CallbackLost."""
        for it in self.repositories:
            if str(it.hosted.hosted_id) == hosted_id:
                return it
        raise CallbackLost


def begin(organization_id: str, secret: str, *, is_installed: bool) -> str:
    """Returns the page of GitHub to go to: the App's installation, or, if it is installed, the person's identity.

    `secret` is the session's. Raises GithubOff.
    """
    _require_github()
    state = _seal_state(organization_id, 0, secret)
    return app_pages.authorization_url(state, _callback()) if is_installed else app_pages.installation_url(state)


def open_state(state: str, secret: str) -> State:
    """Returns the state that a callback carries. Raises GithubOff, CallbackLost."""
    _require_github()
    text, _, seal = state.rpartition(".")
    if keyring.signer_of(_STATE, f"{secret}\0{text}", seal) is None:
        raise CallbackLost
    organization_id, until, installation_id, _ = text.split(".")
    if int(until) <= clock.now() or not ids.is_root(ids.ORGANIZATION, organization_id):
        raise CallbackLost
    return State(organization_id, int(until), int(installation_id), digest(state))


def confirm(state: State, installation_id: int | None, secret: str) -> str:
    """Returns the page of GitHub that confirms who the person is."""
    number = installation_id or state.installation_id
    return app_pages.authorization_url(_seal_state(state.organization_id, number, secret), _callback())


def finish(state: State, code: str, installation_id: int | None, secret: str) -> Offers:
    """Returns the repositories that the person may connect.

    Raises CallbackLost, NotIdentified, NoAccessOnGithub, GithubUnavailable.
    """
    number = installation_id or state.installation_id or None
    if not installations.use_state(state.digest, state.until):
        raise CallbackLost
    with _code_host_errors():
        person = connecting.identify(code)
        accessible = person.list_installations()
        if number is not None:
            if number not in accessible:
                raise NoAccessOnGithub
            offered = _list_repositories(person, number)
        else:
            offered = []
            for one in accessible[:_MOST_INSTALLATIONS]:
                with suppress(InstallationGone):  # a suspended installation doesn't affect the others
                    offered += _list_repositories(person, one)
    offered.sort(key=lambda it: (it.hosted.owner.lower(), it.hosted.name.lower()))
    return _seal_offers(state.organization_id, offered, secret)


def open_offers(organization_id: str, sealed: str, secret: str) -> Offers:
    """Returns the offers that the form carries, sealed. Raises CallbackLost, also for those of an earlier release."""
    text, _, seal = sealed.rpartition(".")
    if keyring.signer_of(_OFFERS, f"{secret}\0{text}", seal) is None:
        raise CallbackLost
    content = json.loads(base64.urlsafe_b64decode(text))
    if content["organization"] != organization_id or content["until"] <= clock.now():
        raise CallbackLost
    try:
        offered = [GrantedRepository(HostedRepository(**it), home) for it, home in content["repositories"]]
    except (KeyError, TypeError, ValueError):
        raise CallbackLost from None
    return Offers(offered, sealed)


def _require_github() -> None:
    if not app_pages.is_configured():
        raise GithubOff


def _callback() -> str:
    return f"{dashboard_base_url()}/github/callback"


def _seal_state(organization_id: str, installation_id: int, secret: str) -> str:
    text = f"{organization_id}.{int(clock.now()) + STATE_SECONDS}.{installation_id}.{secrets.token_urlsafe(12)}"
    return f"{text}.{keyring.current().digest(_STATE, f'{secret}\0{text}')}"


def _seal_offers(organization_id: str, offered: list[GrantedRepository], secret: str) -> Offers:
    entries: list[tuple[dict[str, Any], str]] = []
    size = 0
    for hosted, homepage in offered:
        entry = asdict(hosted), homepage
        size += len(json.dumps(entry))
        if size > _MOST_OFFERED_BYTES:
            break
        entries.append(entry)
    until = int(clock.now()) + STATE_SECONDS
    content = {"organization": organization_id, "until": until, "repositories": entries}
    text = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
    sealed = f"{text}.{keyring.current().digest(_OFFERS, f'{secret}\0{text}')}"
    return Offers(offered[: len(entries)], sealed)


def _list_repositories(person: Person, installation_id: int) -> list[GrantedRepository]:
    """Returns the installation's repositories that the person can write to. Raises InstallationGone, AccessLost."""
    connecting.check_installation(installation_id)
    return person.list_repositories(installation_id)


@contextmanager
def _code_host_errors() -> Iterator[None]:
    """Raises NotIdentified, NoAccessOnGithub, and GithubUnavailable for errors of the code host."""
    try:
        yield
    except CodeRejected as failure:
        raise NotIdentified from failure
    except (AccessLost, InstallationGone) as failure:
        # Nested, because the status and request ID are those of the code host's response.
        raise NoAccessOnGithub(codeHost=failure.context) from failure
    except CodeHostError as failure:
        logger.warning("GitHub could not be asked", extra=failure.context | {"error": type(failure).__name__})
        raise GithubUnavailable from failure
