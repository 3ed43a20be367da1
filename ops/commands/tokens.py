"""`assent-ops token`: bearer tokens that act for a user."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated

import typer

from controlplane.platform.core.scopes import SCOPES
from ops.arguments import one_of, parse_life
from ops.command import command
from ops.output import Result

ALL = "all"

app = typer.Typer(no_args_is_help=True, help="Bearer tokens that act for a user.")


@command(app, "create")
def create_token(
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Email address or user id.")],
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope",
            parser=one_of((*SCOPES, ALL)),
            help=f"A scope; repeatable. `{ALL}` grants every scope.",
        ),
    ],
    life: Annotated[
        int,
        typer.Option(
            "--life", parser=parse_life, metavar="TIME", help="The lifetime, for example 90s, 30m, 1h, or 7d."
        ),
    ] = "1h",  # type: ignore[assignment]  # Typer parses the default as well
) -> Result:
    """Create a token and print it once: only its hash is stored, so it can't be shown again."""
    from controlplane.people import tokens as user_tokens
    from controlplane.platform.core import clock
    from ops.lookup import get_user

    profile = get_user(user)
    scopes = sorted(SCOPES if ALL in scope else set(scope))
    expires_at = clock.timestamp(int(clock.now()) + life)
    secret = user_tokens.create_token(profile.user_id, scopes, life)
    document = {
        "accessToken": secret,
        "userId": profile.user_id,
        "email": profile.email,
        "scopes": scopes,
        "expiresAt": expires_at,
    }
    return Result(document, "Save the token now. It can't be shown again.")
