"""The complete command line: its command groups and exit codes."""

from ops import (
    billing,
    code_host,
    dead_letters,
    feedback,
    issues,
    members,
    organizations,
    repositories,
    signing_keys,
    tables,
    users,
)
from ops.arguments import new_group

_HELP = """Do what only an operator can: plans, credits, dead letters, signing keys, restores, and the data of people.

Writes to the table directly, under the rules of the service: slugs are unique, an organization always has an owner,
and credits never drop below zero. Run it against the local stack (--local), or against AWS (--stack NAME) with the
credentials that the AWS CLI would use.

Options of every command, anywhere on the command line:

\b
  --local              The table of the local stack that `make run` starts.
  --stack NAME         A CloudFormation stack's table.
  --table NAME         A table by its name. Default, if no table is selected:
                       TABLE_NAME. Set SERVICE_BRAND as deployed.
  --region TEXT        The AWS region, if the environment doesn't set it.
  --endpoint-url TEXT  Another endpoint for AWS.
  --json               Print one JSON document; errors as JSON on stderr.

Exit codes: 0 done · 1 refused or failed · 2 wrong usage, or confirmation required (--yes) · 3 not found · 4 conflict
with the current state.

A USER is an email address or an id (usr_…), an ORGANIZATION a slug or an id (org_…). No command lists all users or all
organizations, because that would read the whole table: `member list` and `user show` go from one to the other.
"""

app = new_group(_HELP)
for name, group in {
    "user": users.app,
    "token": users.tokens,
    "organization": organizations.app,
    "member": members.app,
    "plan": billing.plans,
    "credits": billing.balances,
    "top-up": billing.top_ups,
    "key": organizations.keys,
    "feedback": feedback.app,
    "issue": issues.app,
    "repository": repositories.app,
    "github": code_host.app,
    "signing-key": signing_keys.app,
    "table": tables.app,
    "dead-letters": dead_letters.app,
}.items():
    app.add_typer(group, name=name)
