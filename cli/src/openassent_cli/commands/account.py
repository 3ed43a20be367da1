"""`assent login`, `logout`, and `whoami`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli import profiles
from openassent_cli.commands.shared import ask
from openassent_cli.invocation import checked_url, command, invocation, note
from openassent_cli.output import ago, counted, done, show
from openassent_cli.problems import Exit, Problem
from openassent_cli.profiles import DEFAULT, Profile

if TYPE_CHECKING:
    from openassent.models import DeviceCode


def register(app: typer.Typer) -> None:
    """Adds the commands to the program itself: they have no group."""
    for function in (login, logout, whoami):
        app.command()(command(function))


def login(
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="A scope to ask for; repeatable. All of them by default.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Sign in with your browser.

    Shows a code and a page to approve it on. Use --base-url for the service's address, and --profile for a second
    account.
    """
    from openassent_cli import credentials  # noqa: PLC0415 (what signing in needs takes long to import)
    from openassent_cli.login import open_browser, sign_in  # noqa: PLC0415
    from openassent_cli.session import tokens_of  # noqa: PLC0415

    given = invocation()
    name = profiles.checked_name(given.profile or (profiles.current() if profiles.all_profiles() else DEFAULT))
    stored = profiles.find(name)
    address = given.base_url or (stored and stored.base_url) or ask("the address of the service", "--base-url")
    base_url = checked_url(address)

    def show_code(code: "DeviceCode") -> None:
        note(f"Your code is {code.user_code}.")
        if browser and open_browser(code.verification_uri_complete):
            note("Compare it with the code in your browser, and approve it there.")
        else:
            note(f"Open {code.verification_uri} and enter it.")

    with given.anonymous(base_url) as client:
        token = sign_in(client, base_url, scope, show_code)
    store = credentials.store()
    with profiles.locked(f"tokens-{name}"):
        store.save(name, tokens_of(token))
    kept = replace(stored, base_url=base_url) if stored and stored.base_url == base_url else Profile(base_url)
    profiles.save(name, kept)
    with replace(given, profile=name, base_url=base_url).client() as signed_in:
        me = signed_in.me.get()
    note(f"The tokens are in {store.place}.")
    done(me, f"You are signed in to {base_url}, with {counted(len(me.organizations), 'organization')}.")


def logout() -> None:
    """Revoke this profile's tokens, and forget them."""
    from openassent_cli.session import revoke  # noqa: PLC0415

    given = invocation()
    name = given.profile_name
    stored = profiles.find(name)
    if stored is None:
        raise Problem(f"There is no profile {name}.", "`assent profile list` lists them.", Exit.NOT_FOUND)
    with given.anonymous(stored.base_url) as client:
        was_signed_in = revoke(name, client.device)
    profiles.remove(name)
    done({"revoked": was_signed_in}, "You are signed out." if was_signed_in else "You weren't signed in.")


def whoami() -> None:
    """Show who you are, and what your credential may do."""
    given = invocation()
    with given.client() as client:
        me = client.me.get()
    principal = me.principal
    key_id = getattr(principal, "key_id", None)
    expires_at = getattr(principal, "expires_at", None)
    show(
        me,
        [
            ("Service", given.settings().base_url),
            ("Profile", None if given.api_key else given.profile_name),
            ("User", None if key_id else getattr(principal, "user_id", None)),
            ("API key", key_id),
            ("Expires", ago(expires_at) if expires_at else None),
            ("Organizations", [f"{it.slug} ({it.role})" for it in me.organizations] or "none"),
            ("Scopes", sorted(me.scopes)),
        ],
    )
