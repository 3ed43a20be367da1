"""The options that every command has, and the client that follows from them."""

import contextlib
import functools
import inspect
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console

from openassent_cli import failures, finding, profiles
from openassent_cli.printable import printable
from openassent_cli.problems import Exit, NotSignedIn, Problem
from openassent_cli.profiles import Profile

if TYPE_CHECKING:
    from openassent import Assent


@dataclass(frozen=True)
class Invocation:
    """One run of the command line: its options, or their values in the environment.

    profile: the name given, or None for the current profile. organization: an ID or slug.
    """

    profile: str | None = None
    base_url: str | None = None
    organization: str | None = None
    json: bool = False
    quiet: bool = False

    @property
    def profile_name(self) -> str:
        return profiles.checked_name(self.profile) if self.profile else profiles.current()

    @property
    def api_key(self) -> str | None:
        """The API key of the environment. A profile that was asked for by name comes first."""
        return None if self.profile else os.environ.get("ASSENT_API_KEY", "").strip() or None

    def settings(self) -> Profile:
        """Returns where the command connects to.

        Raises Problem if that isn't known, or if it isn't the service that issued the profile's tokens.
        """
        stored = profiles.find(self.profile_name)
        base_url = self.base_url or (stored and stored.base_url)
        if not base_url:
            if self.profile:
                raise NotSignedIn(f"There is no profile {self.profile}.")
            if self.api_key:
                message = "The service's address isn't known."
                raise Problem(message, "Set ASSENT_BASE_URL, or give --base-url.", Exit.USAGE)
            raise NotSignedIn
        address = checked_url(base_url)
        if stored and stored.base_url != address:
            if not self.api_key:
                message = f"The profile {self.profile_name} is signed in to {stored.base_url}, not to {address}."
                advice = f"Sign in there with another profile: `assent login --profile NAME --base-url {address}`."
                raise Problem(message, advice, Exit.SIGN_IN)
            stored = None
        return Profile(address, self.organization or (stored.organization if stored else None))

    @property
    def documentation(self) -> str | None:
        """The address of the service's documentation. None if no service is known."""
        try:
            return f"{self.settings().base_url}/docs"
        except Problem:
            return None

    @contextlib.contextmanager
    def client(self) -> "Iterator[Assent]":
        """Yields a client with the profile's credential. Raises Problem."""
        from openassent import Assent  # noqa: PLC0415 (takes long to import, and the local scan doesn't need it)
        from openassent_cli.session import ProfileAuth  # noqa: PLC0415

        settings = self.settings()
        with self.anonymous(settings.base_url) as anonymous:
            auth = None if self.api_key else ProfileAuth(self.profile_name, anonymous.device)
            connect = functools.partial(
                Assent, api_key=self.api_key, auth=auth, base_url=settings.base_url, user_agent=_user_agent()
            )
            organization = settings.organization
            if organization and not organization.startswith("org_"):
                with connect() as client:
                    organization = finding.organization_id(client, organization)
            with connect(organization=organization) as client:
                yield client

    def anonymous(self, base_url: str) -> "Assent":
        """Returns a client without a credential."""
        from openassent import Assent  # noqa: PLC0415

        return Assent(base_url=base_url, user_agent=_user_agent())


def _user_agent() -> str:
    """Returns the User-Agent header. It contains nothing about the person or the machine but the platform."""
    from openassent import __version__  # noqa: PLC0415 (see `extras`)

    return f"assent-cli/{__version__} python/{platform.python_version()} {platform.system().lower()}"


def checked_url(text: str) -> str:
    """Returns the base URL without a trailing slash.

    Raises InvalidArgument, and Problem for one to which no credential may go.
    """
    from openassent._settings import base_address  # noqa: PLC0415

    address = base_address(text).rstrip("/")
    url = urlsplit(address)
    if url.scheme == "https" or url.hostname in {"localhost", "127.0.0.1", "::1"}:
        return address
    advice = "Use an https URL. Plain http is only for services on this machine."
    raise Problem(f"{address} isn't encrypted.", advice, Exit.USAGE)


_running: ContextVar[Invocation] = ContextVar("running")

_PANEL = "Options of every command"
_JSON = typer.Option("--json", help="Print the result as JSON, as the API returns it.", rich_help_panel=_PANEL)
_QUIET = typer.Option("--quiet", "-q", help="Print results only, no messages.", rich_help_panel=_PANEL)
_PROFILE = typer.Option("--profile", envvar="ASSENT_PROFILE", help="The profile to use.", rich_help_panel=_PANEL)
_BASE_URL = typer.Option(
    "--base-url", envvar="ASSENT_BASE_URL", help="The address of the service.", rich_help_panel=_PANEL
)
_ORGANIZATION = typer.Option(
    "--org", envvar="ASSENT_ORG", help="The organization to act in, by its ID or slug.", rich_help_panel=_PANEL
)


def _shared(
    *,
    json: Annotated[bool, _JSON] = False,
    quiet: Annotated[bool, _QUIET] = False,
    profile: Annotated[str | None, _PROFILE] = None,
    base_url: Annotated[str | None, _BASE_URL] = None,
    org: Annotated[str | None, _ORGANIZATION] = None,
) -> Invocation:
    """Makes the invocation from the options that every command has."""
    return Invocation(profile, base_url, org, json, quiet)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Returns the function as a command that also has the options of every command, and ends with an exit code."""
    own, shared = inspect.signature(function), inspect.signature(_shared)

    @functools.wraps(function)
    def run(**options: Any) -> None:
        _running.set(_shared(**{name: options.pop(name) for name in shared.parameters}))
        with failures.ending(console(error=True)):
            function(**options)

    parameters = [it.replace(kind=inspect.Parameter.KEYWORD_ONLY) for it in own.parameters.values()]
    run.__signature__ = own.replace(parameters=[*parameters, *shared.parameters.values()])  # type: ignore[attr-defined]
    return run


def invocation() -> Invocation:
    """Returns the options of the command that is running."""
    return _running.get()


def console(*, error: bool = False) -> Console:
    """Returns the terminal. Rich leaves out colors and progress bars without a terminal, or if NO_COLOR is set."""
    return Console(stderr=error, highlight=False, soft_wrap=not (sys.stderr if error else sys.stdout).isatty())


def note(message: str) -> None:
    """Prints a message for people, unless --quiet is given. Standard output contains results only."""
    if not invocation().quiet:
        console(error=True).print(printable(message), markup=False)
