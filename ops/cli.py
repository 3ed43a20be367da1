"""The complete command line: its command groups and exit codes."""

import typer

from ops.command import Program, unwrap
from ops.commands import (
    audits,
    billing,
    code_host,
    dead_letters,
    feedback,
    identities,
    intake,
    issues,
    keys,
    members,
    organizations,
    repositories,
    signing_keys,
    tables,
    tokens,
    users,
)

_EPILOG = (
    "Exit codes: 0 done · 1 refused or failed · 2 wrong usage, or confirmation required (--yes) · "
    "3 not found · 4 conflict with the current state.\n\n"
    "A USER is an email address or an id (usr_…), an ORGANIZATION a slug or an id (org_…). No command lists all users "
    "or all organizations, because that would read the whole table: `member list` and `user show` go from one to the "
    "other."
)

_HELP = """Do what only an operator can: plans, credits, dead letters, signing keys, restores, and the data of people.

Writes to the table directly, under the rules of the service: slugs are unique, an organization always has an owner,
and credits never drop below zero. Run it against the local stack (--local), or against AWS (--stack NAME) with the
credentials that the AWS CLI would use.
"""

app = typer.Typer(
    cls=Program, no_args_is_help=True, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False
)
app.callback(help=unwrap(_HELP), epilog=_EPILOG)(lambda: None)

users.app.add_typer(identities.app)  # without a name, so that its commands belong to `user`
app.add_typer(users.app, name="user")
app.add_typer(tokens.app, name="token")
app.add_typer(organizations.app, name="organization")
app.add_typer(members.app, name="member")
app.add_typer(billing.plan_app, name="plan")
app.add_typer(billing.credits_app, name="credits")
app.add_typer(billing.top_up_app, name="top-up")
app.add_typer(keys.app, name="key")
app.add_typer(audits.app, name="audit")
app.add_typer(feedback.app, name="feedback")
app.add_typer(issues.app, name="issue")
app.add_typer(intake.app, name="intake")
app.add_typer(repositories.app, name="repository")
app.add_typer(code_host.app, name="github")
app.add_typer(signing_keys.app, name="signing-key")
app.add_typer(tables.app, name="table")
app.add_typer(dead_letters.app, name="dead-letters")
