"""One run of every command that talks to the API, in the office's world."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import ANY

from tests.support.reply import Reply

DASHBOARD = "https://dashboard.assent.test"


def _last(replies: list[Reply]) -> Any:
    return replies[-1].data


@dataclass(frozen=True)
class Case:
    """A command line and its output.

    shown: parts of the output for people, on either stream. json: the output with --json, from the API's responses.
    then: another command line, and what it shows only after this one.
    """

    line: str
    shown: tuple[str, ...]
    json: Callable[[list[Reply]], Any] = _last
    then: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.line


CASES = [
    Case(
        "whoami",
        (
            "Name:\tAda Lovelace",
            "Email:\tada@example.com",
            "Organization:\t{org}",
            "https://api.assent.test",
            "default",
            "{org} (owner), {second} (owner)",
            "inbox.write",
        ),
    ),
    Case(
        "open shop --no-browser",
        ("/organizations/{org}/projects/shop\n",),
        lambda replies: {"url": replies[-1].data["dashboardUrl"]},
    ),
    Case("open --no-browser", (f"{DASHBOARD}/organizations/{{org}}\n",), lambda _: {"url": ANY}),
    Case("open {scan} --no-browser", (f"{DASHBOARD}/organizations/{{org}}/scans/{{scan}}\n",), lambda _: {"url": ANY}),
    Case("open {item} --no-browser", (f"{DASHBOARD}/organizations/{{org}}/inbox/{{item}}\n",), lambda _: {"url": ANY}),
    Case("org list", ("{org}\tAcme\towner\torg_", "{second}\tBakery\towner\torg_")),
    Case("org create Cafe", ("Created Cafe (cafe).",), then=("org list", "Cafe")),
    Case("org use {second}", ("Commands act in Bakery now.",), then=("profile list", "org_")),
    Case(
        "profile list",
        ("*\tdefault\thttps://api.assent.test",),
        lambda _: [{"name": "default", "baseUrl": "https://api.assent.test", "organization": None, "current": True}],
    ),
    Case("profile use default", ("Commands use the profile default now.",), lambda _: {"current": "default"}),
    Case("project list", ("shop\tshop\t\t{project}",)),
    Case("project show shop", ("ID:\t{project}", "Region:\teu-central", "Websites:\tshop.example.com", "Branding:")),
    Case(
        "project create Kiosk --region eu-central --website kiosk.example.com",
        ("Created Kiosk (kiosk): prj_",),
        then=("project list", "kiosk\tKiosk\t"),
    ),
    Case("project update shop --description Bread", ("Changed shop.",), then=("project list", "Bread")),
    Case(
        "project delete shop --yes", ("Deleted shop with 2 websites.",), then=("project list", "There are no projects")
    ),
    Case("website list shop", ("shop.example.com\tyes\tyes\tweb_",), lambda replies: replies[-1].data["websites"]),
    Case(
        "website add shop b.example.com", ("Added b.example.com to shop.",), then=("website list shop", "b.example.com")
    ),
    Case(
        "website remove shop www.example.com --yes",
        ("Removed www.example.com.",),
        then=("api GET /v1/audit-log", "website.delete"),
    ),
    Case("vendor list shop", ("segment\tSegment\tanalytics\tsuggested\t2026-03-04T05:00:00.000Z",)),
    Case("vendor table shop", ("| Vendor | Purpose", "without a decision (Segment)")),
    Case("vendor approve shop segment", ("Approved segment.",), then=("vendor list shop", "accepted")),
    Case("vendor ignore shop segment", ("Ignored segment.",), then=("vendor list shop", "rejected")),
    Case("repo list", ("acme/shop\tmain\tshop\tyes\trep_", "acme/blog\tmain\t\tyes\trep_")),
    Case(
        "repo link blog shop --schedule daily", ("Linked blog to shop.",), then=("repo list", "acme/blog\tmain\tshop")
    ),
    Case("repo link shop shop --branch next", ("Linked shop to shop.",)),
    Case(
        "repo unlink acme/shop shop --yes",
        ("Unlinked acme/shop from shop.",),
        then=("repo list", "acme/shop\tmain\t\t"),
    ),
    Case("audit list", ("https://shop.example.com/\tpassed\t20", "\t\t\t{run}\t{audit}\n")),
    Case("audit list --project {project}", ("{audit}\n",)),
    Case(
        "audit start www.example.com --schedule daily",
        ("_assent-audit.www.example.com", "The run is pending. Follow it with `assent audit show run_"),
        then=("audit list", "https://www.example.com/"),
    ),
    Case(
        "audit show {run}",
        (
            "Website:\thttps://shop.example.com/",
            "Outcome:\tpassed",
            "Unpkg (analytics): before a choice, after acceptance",
            "Passed: No findings on 1 page of shop.example.com.",
        ),
    ),
    Case("scan list --repo shop", ("completed\tshop\tmain\t1f0c2b9e7\t5\tmanual\t", "{scan}\n", "{preview}\n")),
    Case("scan start acme/shop", ("The scan is being prepared.",)),
    Case(
        "scan show {scan}",
        ("Scan:\t{scan}", "Analyzed:\t9 of 10 files", "P0\tGoogle Analytics loads", "app.tsx:5\thigh"),
    ),
    Case("scan diff {scan} --base {scan}", ("0 new, 0 fixed, 5 unchanged.",)),
    Case("scan cancel {running}", ("Canceled {running}.",), then=("scan show {running}", "canceled it.")),
    Case("scan unlock {preview} --yes", ("Unlocked {preview}.",), then=("api GET /v1/billing", '"balance": 450')),
    Case("inbox list", ("P0\tGoogle Analytics", "P2\tOutdated script\topen\t\t\t", "{other}\n")),
    Case("inbox list --search google --sort updated", ("P0\tGoogle Analytics",)),
    Case(
        "inbox show {item}", ("P0  Google Analytics", "src/app.tsx:5", "> 5  <script>", "Fix: Load it in the consent")
    ),
    *(
        Case(
            f"inbox {verb} {{item}} {{other}} -m Known",
            (f"{{item}} is {status}.\n{{other}} is {status}.",),
            lambda replies: [reply.data for reply in replies[1::2]],
            then=(f"inbox list --status {status}", "{item}"),
        )
        for verb, status in (("accept", "accepted"), ("dismiss", "dismissed"), ("resolve", "resolved"))
    ),
    Case(
        "inbox dismiss {item} --until 90d",
        ("{item} is dismissed.",),
        lambda replies: [replies[-1].data],
        then=("inbox show {item} --json", '"dismissedUntil": "20'),
    ),
    Case(
        "inbox snooze {item} --for 7d",
        ("{item} is dismissed.",),
        lambda replies: [replies[-1].data],
        then=("inbox show {item} --json", '"dismissedUntil": "20'),
    ),
    Case(
        "inbox assign {item} grace@example.com",
        ("{item} is assigned to Grace Hopper.",),
        then=("inbox show {item}", "Grace Hopper"),
    ),
    Case("inbox assign {item} --none", ("{item} is unassigned.",)),
    Case(
        "inbox comment {item} '@grace@example.com Is it ours?'",
        ("The comment is added.",),
        then=("inbox show {item}", "Ada Lovelace, just now\n@Grace Hopper Is it ours?"),
    ),
    Case("inbox reopen {item}", ("{item} is open.",), lambda replies: [replies[-1].data]),
    Case(
        "inbox issue {item} --existing 7", ("Issue: https://github.com/acme/shop/issues/7",), then=("inbox list", "#7")
    ),
    Case("key list", ("deploy\tassent_", "\tnever\tnever\tkey_")),
    Case(
        "key create CI --scope projects.read --project shop --allow-ip 192.0.2.0/24 --expires-in 90d",
        ("Created the key CI.", "Store the secret now", "assent_"),
        then=("key list", "CI\tassent_"),
    ),
    Case("key roll deploy --yes", ("Replaced the secret of deploy.", "Store the secret now", "assent_")),
    Case("key roll deploy --grace-period 1d", ("Replaced the",), then=("api GET /v1/api-keys", '"previous": {{')),
    Case("key delete deploy --yes", ("Deleted the key deploy.",), then=("key list", "There are no API keys")),
    Case("member invite tim@example.com --role admin", ("Invited tim@example.com as admin.",)),
    Case("member list", ("Ada Lovelace\tada@example.com\towner", "Grace Hopper\tgrace@example.com\tmember")),
    Case(
        "member set-role grace@example.com admin", ("is now admin.",), then=("member list", "grace@example.com\tadmin")
    ),
    Case(
        "member remove grace@example.com --yes",
        ("Removed grace@example.com.",),
        then=("api GET /v1/audit-log", "member.remove"),
    ),
    Case("api GET /v1/projects/{project}", ('"projectName": "shop"',)),
    Case("api get /v1/audit-log -f action=scan.complete -f limit=1", ('"action": "scan.complete"',)),
    Case(
        "api GET /v1/members?limit=1 --paginate --org {org}",
        ("ada@example.com", "grace@example.com"),
        lambda replies: [it for reply in replies[-2:] for it in reply.data],
    ),
    Case(
        "api POST /v1/webhook-endpoints -f name=Chat -f url=https://hooks.example.com/a -f 'events=[\"credits.low\"]'",
        ('"name": "Chat"', '"whsec_'),
        then=("api GET /v1/webhook-endpoints", '"name": "Chat"'),
    ),
    Case("api DELETE /v1/webhook-endpoints/{webhook} -f dryRun=true", ('"deleted": true',)),
]
# These have tests of their own.
ELSEWHERE = {"audit local", "login", "logout", "ci", "mcp", "scan local", "fix"}
