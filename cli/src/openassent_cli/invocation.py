"""The options that every command has, and the client that follows from them."""

import contextlib
import functools
import inspect
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

import typer
from typer.models import ArgumentInfo

from openassent_cli import failures, finding, profiles
from openassent_cli.printable import printable
from openassent_cli.problems import Exit, NotSignedIn, Problem
from openassent_cli.profiles import Profile

if TYPE_CHECKING:
    from rich.console import Console

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
                raise NotSignedIn(f"There is no profile {self.profile}.", self.profile)
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
        if stored is None:
            return Profile(address, self.organization)
        return replace(stored, organization=self.organization or stored.organization)

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


def shared_options(*, hidden: bool) -> list[Parameter]:
    """Returns the options of every command. Only those of the program itself are shown, and read the environment."""

    def option(kind: Any, *names: str, explained: str, variable: str | None = None) -> Parameter:
        envvar = None if hidden else variable
        declared = typer.Option(*names, help=explained, envvar=envvar, hidden=hidden, show_default=False)
        default = False if kind is bool else None
        name = names[0].removeprefix("--").replace("-", "_")
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])

    text = str | None
    return [
        option(bool, "--json", explained="Print the result as JSON, as the API returns it."),
        option(bool, "--quiet", "-q", explained="Print results only, no messages."),
        option(text, "--profile", explained="The profile to use.", variable="ASSENT_PROFILE"),
        option(text, "--base-url", explained="The address of the service.", variable="ASSENT_BASE_URL"),
        option(text, "--org", explained="The organization to act in, by its ID or slug.", variable="ASSENT_ORG"),
    ]


def begin(
    before: Invocation, *, json: bool, quiet: bool, profile: str | None, base_url: str | None, org: str | None
) -> None:
    """Makes the invocation. Options that aren't given stay as before."""
    made = Invocation(
        profile or before.profile,
        base_url or before.base_url,
        org or before.organization,
        json or before.json,
        quiet or before.quiet,
    )
    _running.set(made)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Returns the function as a command that also has the options of every command, and ends with an exit code.

    Each argument that must be given can also be given as an option: `project create --name Shop`.
    """
    own, shared = [*inspect.signature(function).parameters.values()], shared_options(hidden=True)
    required = [it.name for it in own if _is_required_argument(it)]

    @functools.wraps(function)
    def run(**options: Any) -> None:
        begin(invocation(), **{it.name: options.pop(it.name) for it in shared})
        with failures.ending():
            _fill(options, required)
            function(**options)

    parameters = [
        part for it in own for part in (_either(it) if it.name in required else [it.replace(kind=it.KEYWORD_ONLY)])
    ]
    run.__signature__ = inspect.Signature([*parameters, *shared])  # type: ignore[attr-defined]
    return run


def _is_required_argument(parameter: Parameter) -> bool:
    """Returns whether the parameter is an argument with one value, which must be given."""
    kind, *infos = get_args(parameter.annotation) or (None,)
    return (
        parameter.default is parameter.empty
        and get_origin(kind) is not list
        and any(isinstance(it, ArgumentInfo) for it in infos)
    )


def _either(parameter: Parameter) -> list[Parameter]:
    """Returns an argument, and an option of the same name, of which one must be given."""
    kind, info, *_ = get_args(parameter.annotation)
    option = typer.Option(f"--{parameter.name.replace('_', '-')}", hidden=True)
    argument = parameter.replace(kind=Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, info])
    return [argument, argument.replace(name=_option_of(parameter.name), annotation=Annotated[kind | None, option])]


def _option_of(name: str) -> str:
    return f"{name}_option"


def _fill(options: dict[str, Any], required: Sequence[str]) -> None:
    """Sets the arguments that must be given: from their options, and the others in order. Raises Problem."""
    given = [value for name in required if (value := options[name]) is not None]
    for name in required:
        value = options.pop(_option_of(name))
        if value is None and not given:
            advice = f"Give it as an argument, or as --{name.replace('_', '-')}."
            raise Problem(f"{name.upper()} is missing.", advice, Exit.USAGE)
        options[name] = given.pop(0) if value is None else value
    if given:
        raise Problem(f"The argument {given[0]} is one too many.", code=Exit.USAGE)


def invocation() -> Invocation:
    """Returns the options of the command that is running."""
    return _running.get()


def in_terminal(*, error: bool = False) -> bool:
    """Returns whether standard output, or standard error, is shown in a terminal."""
    stream = sys.stderr if error else sys.stdout
    return stream.isatty() or os.environ.get("TTY_COMPATIBLE") == "1"


def console(*, error: bool = False) -> "Console":
    """Returns the terminal. Rich leaves out colors if NO_COLOR is set."""
    from rich.console import Console  # noqa: PLC0415 (takes longer to import than most commands need to run)

    return Console(stderr=error, highlight=False)


def note(message: str) -> None:
    """Prints a message for people, unless --quiet is given. Standard output contains results only."""
    if not invocation().quiet:
        typer.echo(printable(message), err=True)
