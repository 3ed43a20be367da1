"""`assent login`, `logout`, and `whoami`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli import profiles
from openassent_cli.commands.shared import Group, ask
from openassent_cli.finding import chosen_slug
from openassent_cli.invocation import checked_url, invocation, note
from openassent_cli.output import ago, counted, done, show
from openassent_cli.problems import Exit, Problem
from openassent_cli.profiles import DEFAULT, Profile

if TYPE_CHECKING:
    from openassent import Assent
    from openassent.models import CallingCredential, DeviceCode, MemberUser


app = Group()


@app.add("login", "assent login --base-url https://api.assent.example", "assent login --profile staging --no-browser")
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

    dashboard = None

    def show_code(code: "DeviceCode") -> None:
        nonlocal dashboard
        dashboard = code.verification_uri.removesuffix("/device")
        note(f"Your code is {code.user_code}.")
        note(f"Approve it at {code.verification_uri_complete}")
        if browser and open_browser(code.verification_uri_complete):
            note("The page should open in your browser. It must show the same code.")

    with given.anonymous(base_url) as client:
        token = sign_in(client, base_url, scope, show_code)
    store = credentials.store()
    with profiles.locked(f"tokens-{name}"):
        store.save(name, tokens_of(token))
    organization = stored.organization if stored and stored.base_url == base_url else None
    profiles.save(name, Profile(base_url, organization, dashboard))
    with replace(given, profile=name, base_url=base_url).client() as signed_in:
        me = signed_in.me.get()
    note(f"The tokens are in {store.place}.")
    done(me, f"You are signed in to {base_url}, with {counted(len(me.organizations), 'organization')}.")


@app.add("logout")
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


@app.add("whoami")
def whoami() -> None:
    """Show who you are, and what your credential may do."""
    given = invocation()
    with given.client() as client:
        me = client.me.get()
        person = None if given.json else _person(client, me)
    settings = given.settings()
    principal = me.principal
    show(
        me,
        [
            ("Name", person and person.name),
            ("Email", person and person.email),
            ("User", principal.user_id),
            ("API key", principal.key_id),
            ("Expires", ago(principal.expires_at) if principal.expires_at else None),
            ("Organization", chosen_slug(me, settings.organization) or "none"),
            ("Organizations", [f"{it.slug} ({it.role})" for it in me.organizations] or "none"),
            ("Service", settings.base_url),
            ("Profile", None if given.api_key else given.profile_name),
            ("Scopes", sorted(me.scopes)),
        ],
    )


def _person(client: "Assent", me: "CallingCredential") -> "MemberUser | None":
    """Returns the person's name and address from a list of members, if the credential may read one."""
    if me.principal.user_id is None or not me.organizations or "members.read" not in me.scopes:
        return None
    members = client.members.list(organization_id=me.organizations[0].id)
    return next((it.user for it in members if it.user.id == me.principal.user_id), None)
