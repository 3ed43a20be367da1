"""The scopes that a credential can have, and those that an organization API key can have.

A scope never comes to mean more. A new kind of operation gets a scope of its own, which earlier credentials don't have.
"""

from typing import Literal, get_args

SCOPES: dict[str, str] = {
    "organizations.read": "List the organizations you belong to",
    "organizations.write": "Create organizations you will own",
    "projects.read": "Read projects and their consent configuration",
    "projects.write": "Create, update, and delete projects and their consent configuration",
    "members.read": "Read members' names, email addresses, images, and roles, and pending invitations",
    "members.write": "Invite members, change roles, remove members, and cancel invitations",
    "api-keys.read": "List organization API keys",
    "api-keys.write": "Create, change, roll, and delete organization API keys",
    "code-audit.read": "Read scans, findings, scan requests, and connected repositories",
    "code-audit.write": "Start scans and unlock reports",
    "repositories.write": "Link repositories to projects, and disconnect repositories",
    "inbox.read": "Read inbox findings and their evidence, and the vendors of projects",
    "inbox.write": "Change the status of findings and open issues for them",
    "vendors.write": "Approve or ignore vendors detected on projects",
    "billing.read": "Read the plan, credit balance, and top-up settings",
    "webhooks.read": "Read webhook endpoints and their deliveries",
    "webhooks.write": "Create, change, and delete webhook endpoints, rotate their secrets, and replay deliveries",
    "audit-log.read": "Read the audit log of your organizations",
    "sessions.write": "List and revoke your sessions and devices, and save the organization they use by default",
}

# The default scopes of a device whose request names none.
READ_SCOPES = tuple(sorted(scope for scope in SCOPES if scope.endswith(".read")))

KeyScope = Literal[
    "api-keys.read",
    "billing.read",
    "inbox.read",
    "organizations.read",
    "projects.read",
    "projects.write",
]
# An API key has these, unless it is limited to some of them.
API_KEY_SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)
