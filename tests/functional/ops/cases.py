"""One run of every command that changes or shows something of the shop, and the refusals of all commands."""

from dataclasses import dataclass
from typing import Any

from controlplane.platform.core.actions import Action

AT = "2026-03-04T05:06:07.000Z"
TOP_UP = {"enabled": True, "threshold": 10, "amount": 100, "monthlyLimit": 1, "usedThisMonth": 0}
LINK = {
    "projectId": "{project}",
    "productionBranch": None,
    "rootDirectory": None,
    "pullRequestScans": False,
    "scanOnPush": True,
    "schedule": "daily",
    "failureThreshold": "P0",
}
REPOSITORY = {
    "organizationId": "{organization}",
    "owner": "acme",
    "installation": 4711,
    "defaultBranch": "main",
    "visibility": "private",
    "connectedAt": AT,
}
ORGANIZATION = {
    "organizationId": "{organization}",
    "slug": "{org}",
    "name": "Acme",
    "plan": "pro",
    "credits": 120,
    "topUp": TOP_UP,
    "owners": 1,
    "apiKeys": 1,
    "projects": 1,
    "createdAt": AT,
}
USER = {"userId": "{owner}", "email": "ada@example.com", "name": "Ada", "image": None, "createdAt": AT}
IDENTITY = {"issuer": "https://issuer.example", "subject": "old", "createdAt": AT}
SUMMARY = {
    "reference": "{report}",
    "createdAt": AT,
    "category": "bug",
    "surface": "cli",
    "callerId": "{owner}",
    "message": "It fails. Always.",
}
ADMIN = {"userId": "{admin}", "email": "grace@example.com", "name": "Grace Hopper", "role": "admin", "joinedAt": AT}


@dataclass(frozen=True)
class Case:
    """A command line, and what it prints with --json: at least these fields, and exactly these rows.

    entry: what it writes to the audit log. A command without one, and without `then`, changes nothing.
    then: another command line, and what it prints after this one.
    """

    line: str
    document: Any
    entry: Action | None = None
    then: tuple[str, Any] | None = None

    def __str__(self) -> str:
        return self.line


CASES = [
    Case("organization show {org}", ORGANIZATION),
    Case("organization show {organization}", ORGANIZATION),
    Case(
        "organization delete {org} --yes",
        {"deleted": True, "organizationId": "{organization}", "slug": "{org}"},
        Action.ORGANIZATION_DELETE,
        ("user show {owner}", {"organizations": []}),
    ),
    Case("plan set {org} free", ORGANIZATION | {"plan": "free"}, Action.ORGANIZATION_CHANGE_PLAN),
    Case("plan set {organization} enterprise", {"plan": "enterprise"}, Action.ORGANIZATION_CHANGE_PLAN),
    Case(
        "credits add {org} 5",
        {"organizationId": "{organization}", "credits": 125},
        Action.BILLING_ADD_CREDITS,
        ("organization show {org}", {"credits": 125}),
    ),
    Case("credits take {org} 120", {"credits": 0}, Action.BILLING_ADD_CREDITS),
    Case("credits list {org}", [{"at": AT, "kind": "operator", "credits": 120, "scanId": None, "by": None}]),
    Case(
        "top-up enable {org} --threshold 0 --amount 70 --monthly-limit 3",
        ORGANIZATION | {"topUp": TOP_UP | {"threshold": 0, "amount": 70, "monthlyLimit": 3}},
        Action.BILLING_CHANGE_TOP_UP,
    ),
    Case("top-up disable {org}", {"topUp": TOP_UP | {"enabled": False}}, Action.BILLING_CHANGE_TOP_UP),
    Case("member list {org}", [ADMIN, {"userId": "{owner}", "email": "ada@example.com", "role": "owner"}]),
    Case(
        "member add {org} mary@example.com",
        {"organizationId": "{organization}", "userId": "{stranger}", "role": "member"},
        Action.MEMBER_ADD,
        ("organization show {org}", {"owners": 1}),
    ),
    Case(
        "member add {org} {stranger} --role owner",
        {"role": "owner"},
        Action.MEMBER_ADD,
        ("organization show {org}", {"owners": 2}),
    ),
    Case(
        "member set-role {org} {admin} owner",
        {"organizationId": "{organization}", "userId": "{admin}", "role": "owner"},
        Action.MEMBER_CHANGE_ROLE,
        ("organization show {org}", {"owners": 2}),
    ),
    Case("member set-role {org} ada@example.com owner", {"role": "owner"}),
    Case("key list {org}", [{"keyId": "{key}", "name": "deploy", "createdBy": "{owner}", "createdFrom": "test"}]),
    Case("key delete {key} --yes", {"deleted": True, "keyId": "{key}"}, Action.API_KEY_DELETE, ("key list {org}", [])),
    Case(
        "repository connect {org} acme/blog --installation 4711",
        REPOSITORY | {"name": "blog", "url": "https://github.com/acme/blog", "projects": []},
        Action.REPOSITORY_CONNECT,
    ),
    Case(
        "repository connect {org} Acme/Shop --installation 7 --url https://code.example/x",
        {"repositoryId": "{repository}", "installation": 7, "url": "https://code.example/x", "projects": [LINK]},
        Action.REPOSITORY_UPDATE,
    ),
    Case(
        "repository link {repository} {project} --branch next --root-directory apps/web",
        REPOSITORY | {"name": "shop", "projects": [LINK | {"productionBranch": "next", "rootDirectory": "apps/web"}]},
        Action.LINK_UPDATE,
    ),
    Case(
        "issue list",
        [
            {
                "itemId": "{item}",
                "state": "wanted",
                "requestedBy": "{owner}",
                "requestedAt": AT,
                "sentAt": None,
                "overdue": False,
                "marker": "{marker}",
            }
        ],
    ),
    Case("issue reconcile {item}", {"itemId": "{item}", "outcome": "sent"}),
    Case(
        "issue reconcile {item} --number 42 --url https://github.com/acme/shop/issues/42 --yes",
        {"itemId": "{item}", "outcome": "recorded", "number": 42, "url": "https://github.com/acme/shop/issues/42"},
        Action.ISSUE_RECORD,
        ("issue list", []),
    ),
    Case(
        "issue reconcile {item} --absent --yes",
        {"itemId": "{item}", "outcome": "withdrawn"},
        Action.ISSUE_REFUSE,
        ("issue list", []),
    ),
    Case("feedback list", [SUMMARY]),
    Case("feedback list --day 2026-03-05 --days 2", [SUMMARY]),
    Case("feedback list --day 2026-03-05", []),
    Case(
        "feedback show {report}",
        SUMMARY
        | {"message": "It fails.\nAlways.", "reproduction": "a\nb", "expected": None, "requestId": None}
        | dict.fromkeys(("actual", "operation", "clientName", "clientVersion")),
    ),
    Case("feedback pause", {"paused": True}, then=("feedback pause", {"paused": True})),
    Case("feedback resume", {"paused": False}, then=("feedback resume", {"paused": False})),
    Case(
        "user show ADA@example.com",
        USER
        | {"savedOrganizationId": "{organization}", "identities": [IDENTITY]}
        | {"organizations": [{"organizationId": "{organization}", "slug": "{org}", "name": "Acme", "role": "owner"}]},
    ),
    Case("user show {stranger}", {"email": "mary@example.com", "organizations": [], "identities": []}),
    Case(
        "user set-email {owner} Countess@example.com --yes",
        USER | {"email": "countess@example.com"},
        then=("user show countess@example.com", {"userId": "{owner}"}),
    ),
    Case("user set-email ada@example.com ADA@example.com --yes", {"email": "ada@example.com"}),
    Case(
        "user move-identity ada@example.com old --to-subject new --yes",
        IDENTITY | {"userId": "{owner}", "subject": "new", "tokens": 1, "devices": 0, "signIns": 0},
        then=("user show {owner}", {"identities": [IDENTITY | {"subject": "new"}]}),
    ),
    Case(
        "user move-identity {owner} old --to-user mary@example.com --yes",
        IDENTITY | {"userId": "{stranger}"},
        then=("user show {stranger}", {"identities": [IDENTITY]}),
    ),
    Case(
        "token create --user {owner} --scope projects.read --scope billing.read --scope projects.read",
        {
            "userId": "{owner}",
            "email": "ada@example.com",
            "scopes": ["billing.read", "projects.read"],
            "expiresAt": "2026-03-04T06:06:07.000Z",
        },
        then=("user revoke {owner} --yes", {"tokens": 2}),
    ),
    *(
        Case(
            f"token create --user ada@example.com --scope all --life {life}",
            {"expiresAt": ends},
            then=("user revoke {owner} --yes", {"tokens": 2}),
        )
        for life, ends in (
            ("90s", "2026-03-04T05:07:37.000Z"),
            ("30m", "2026-03-04T05:36:07.000Z"),
            ("7d", "2026-03-11T05:06:07.000Z"),
            ("3650d", "2036-03-01T05:06:07.000Z"),
        )
    ),
]

# What each refused line says, at least, by exit code. None of them changes anything.
REFUSALS: dict[int, list[tuple[str, str]]] = {
    1: [
        ("credits take {org} 121", "has 120 credits, fewer than 121"),
        ("member set-role {org} ada@example.com admin", "last owner"),
    ],
    2: [
        ("plan set {org} gold", "enterprise"),
        ("plan set {org}", "PLAN"),
        *((f"credits {verb} {{org}} -- {amount}", "") for verb in ("add", "take") for amount in ("0", "-1", "1.5")),
        ("credits add {org} 1000000001", ""),
        ("credits list {org} --month March", "2026-03"),
        ("credits list {org} --month 2026-13", "2026-03"),
        ("credits list {org} --kind gift", "unlock, top-up, operator"),
        ("top-up enable {org} --threshold -1 --amount 1 --monthly-limit 1", "threshold"),
        ("top-up enable {org} --threshold 0 --amount 0 --monthly-limit 1", "amount"),
        ("top-up enable {org} --threshold 0 --amount 1 --monthly-limit 0", "monthly-limit"),
        ("top-up enable {org} --threshold 0 --amount 1 --monthly-limit 1001", "monthly-limit"),
        ("top-up enable {org} --threshold 0 --amount 1", "monthly-limit"),
        ("member add {org} mary@example.com --role king", "role"),
        ("token create --user {owner} --scope projects.admin", "projects.write"),
        ("token create --user {owner}", "scope"),
        *(
            (f"token create --user {{owner}} --scope all --life {life}", "life")
            for life in ("0h", "1", "h", "-1h", "1.5h", "1w", "3651d", "9999999999s")
        ),
        *(
            (f"repository connect {{org}} {name} --installation 1", "OWNER/NAME")
            for name in ("shop", "acme/", "/shop", "a/b/c", "acme/..")
        ),
        ("repository connect {org} acme/shop --installation 0", "installation"),
        *(
            (f"repository link {{repository}} {{project}} --root-directory {folder}", "relative")
            for folder in ("/apps", "../apps", "apps/../..", "apps/")
        ),
        ("github check shop", "OWNER/NAME"),
        ("issue reconcile {item} --number 42", "together"),
        ("issue reconcile {item} --url https://x.example/1", "together"),
        ("issue reconcile {item} --number 1 --url https://x.example/1 --absent --yes", "either"),
        ("issue reconcile {item} --number 0 --url https://x.example/1", "number"),
        ("issue reconcile {item} --number 1 --url x.example/1", "https://"),
        *((f"feedback list --day {day}", "2026-03-04") for day in ("yesterday", "2026-02-30", "2026-3-4")),
        ("feedback list --days 401", "days"),
        ("user set-email {owner} ada@localhost --yes", "not an email address"),
        ("user set-email {owner} \u212aate@example.com --yes", "not an email address"),
        ("user move-identity {owner} old --yes", "either"),
        ("user move-identity {owner} old --to-subject new --to-user {stranger} --yes", "either"),
        ("user move-identity {owner} old --to-user {owner} --yes", "already"),
        ("user move-identity {owner} old --to-subject old --yes", "already"),
        ("dead-letters list nowhere", "finding-intake"),
        ("dead-letters discard finding-intake --yes", "--message"),
        ("dead-letters list finding-intake", "FINDING_INTAKE_DEAD_LETTERS_URL"),
        ("signing-key show", "SIGNING_SECRET_ARN"),
        ("table restore new --at 2026-03-04T05:06:07", "2026-03-04T05:06:07Z"),
        ("user nope", "nope"),
        ("nope", "nope"),
        ("user show", "USER"),
        ("user show {owner} --nope", "--nope"),
    ],
    3: [
        *(
            (line, "There is no organization")
            for line in (
                "organization show nowhere",
                "organization show org_0000000000000000",
                "organization show org_",
                "organization delete nowhere --yes",
                "plan set nowhere pro",
                "credits add nowhere 5",
                "credits take nowhere 5",
                "credits list nowhere",
                "top-up enable nowhere --threshold 0 --amount 1 --monthly-limit 1",
                "top-up disable nowhere",
                "member add nowhere {owner}",
                "member list nowhere",
                "key list nowhere",
                "repository connect nowhere acme/shop --installation 1",
            )
        ),
        *(
            (f"user show {reference}", "There is no user")
            for reference in ("unknown@example.com", "usr_0000000000000000", "usr_", "unknown", "USR#x")
        ),
        ("member add {org} unknown@example.com", "There is no user"),
        ("member set-role {org} {stranger} owner", "isn't a member"),
        ("token create --user unknown@example.com --scope all", "There is no user"),
        *((f"user {verb} unknown@example.com --yes", "There is no user") for verb in ("revoke", "delete")),
        ("user set-email unknown@example.com a@b.example --yes", "There is no user"),
        ("user move-identity unknown@example.com old --to-subject new --yes", "There is no user"),
        ("user move-identity {owner} old --to-user unknown@example.com --yes", "There is no user"),
        *((f"user delete {reference} --yes", "There is no user") for reference in ("usr_0000000000000000", "unknown")),
        *((f"user export {reference}", "There is no user") for reference in ("unknown@example.com", "unknown")),
        ("user move-identity {stranger} old --to-subject new --yes", "no single identity old"),
        ("user move-identity {stranger} old --to-subject new --issuer https://issuer.example --yes", "no single"),
        *((f"key delete {key} --yes", "no ") for key in ("key_", "nonsense", "key_" + "0" * 34)),
        ("repository link {repository} {foreign}", "no project {foreign}"),
        ("repository link {repository} {gone}", "no project {gone}"),
        ("repository link {repository} nonsense", "no project nonsense"),
        ("repository link rep_nonsense {project}", "no repository rep_nonsense"),
        (f"repository link rep_{'0' * 34} {{project}}", "no such resource"),
        ("issue reconcile inb_nonsense", "no inbox item"),
        (f"issue reconcile inb_{'0' * 34}", "no inbox item"),
        *(
            (f"feedback show {reference}", "no report")
            for reference in ("FDB-20260304-000000-000000-000000", "FDB-20260304", "FEEDBACK#2026-03-04", "x" * 2_000)
        ),
    ],
    4: [
        ("member add {org} {owner} --role owner", "already a member"),
        ("user set-email {owner} grace@example.com --yes", "already has an account"),
        ("issue reconcile {quiet}", "no pending issue"),
        ("issue reconcile {quiet} --absent --yes", "no pending issue"),
    ],
}
