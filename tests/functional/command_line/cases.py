"""One run of every command that talks to the API, in the office's world."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.reply import Reply


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
    Case("whoami", ("https://api.assent.test", "default", "{org} (owner), {second} (owner)", "inbox.write")),
    Case("org list", ("{org}\tAcme\towner\torg_", "{second}\tBakery\towner\torg_")),
    Case("org show {second}", ("Name:\tBakery", "Slug:\t{second}", "Your role:\towner")),
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
    Case("project regions", ("eu-central\tEurope (Frankfurt)",)),
    Case("website list shop", ("shop.example.com\tyes\tno\tweb_",), lambda replies: replies[-1].data["websites"]),
    Case(
        "website add shop b.example.com", ("Added b.example.com to shop.",), then=("website list shop", "b.example.com")
    ),
    Case(
        "website remove shop www.example.com --yes",
        ("Removed www.example.com.",),
        then=("audit-log list", "website.delete"),
    ),
    Case("vendor list shop", ("segment\tSegment\tanalytics\tsuggested\t2026-03-04T05:00:00.000Z",)),
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
    Case("repo disconnect shop --yes", ("Disconnected shop.",), then=("audit-log list", "repository.disconnect")),
    Case("scan list --repo shop", ("completed\tshop\tmain\t1f0c2b9e7\t5\tmanual\t", "{scan}\n", "{preview}\n")),
    Case("scan start acme/shop", ("The scan is being prepared.",)),
    Case(
        "scan show {scan}",
        ("Scan:\t{scan}", "Analyzed:\t9 of 10 files", "P0\tGoogle Analytics loads", "app.tsx:5\thigh"),
    ),
    Case("scan issues {preview}", ("src/app.tsx:3\thigh", "2 more are locked.", "assent scan unlock {preview}")),
    Case("scan diff {scan} --base {scan}", ("0 new, 0 fixed, 5 unchanged.",)),
    Case("scan unlock {preview} --yes", ("Unlocked {preview}.",), then=("billing show", "Credits:\t450")),
    Case("scan sarif {scan}", ('"version": "2.1.0"',), lambda replies: replies[-1].body),
    Case("inbox list", ("P0\tGoogle Analytics", "P2\tOutdated script\topen\t\t\t", "{other}\n")),
    Case(
        "inbox show {item}", ("P0  Google Analytics", "src/app.tsx:5", "  5  <script>", "Fix: Load it in the consent")
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
    Case("inbox reopen {item}", ("{item} is open.",), lambda replies: [replies[-1].data]),
    Case(
        "inbox issue {item} --existing 7", ("Issue: https://github.com/acme/shop/issues/7",), then=("inbox list", "#7")
    ),
    Case("key list", ("deploy\tassent_", "\tnever\tnever\tkey_")),
    Case("key show deploy", ("Name:\tdeploy", "Scopes:\tapi-keys.read, billing.read", "Projects:\tall")),
    Case(
        "key create CI --scope projects.read --project shop --allow-ip 192.0.2.0/24 --expires-in 90d",
        ("Created the key CI.", "Store the secret now", "assent_"),
        then=("key list", "CI\tassent_"),
    ),
    Case("key update deploy --name ship --description Ships", ("Changed the key ship.",), then=("key list", "ship\t")),
    Case("key roll deploy --yes", ("Replaced the secret of deploy.", "Store the secret now", "assent_")),
    Case("key roll deploy --grace-period 1d", ("Replaced the",), then=("key show deploy", "Old secret:\tkey_")),
    Case("key delete deploy --yes", ("Deleted the key deploy.",), then=("key list", "There are no API keys")),
    Case("member list", ("Ada Lovelace\tada@example.com\towner", "Grace Hopper\tgrace@example.com\tmember")),
    Case(
        "member set-role grace@example.com admin", ("is now admin.",), then=("member list", "grace@example.com\tadmin")
    ),
    Case(
        "member remove grace@example.com --yes",
        ("Removed grace@example.com.",),
        then=("audit-log list", "member.remove"),
    ),
    Case("invite list", ("mary@example.com\tmember\t20", "\tinv_")),
    Case(
        "invite create tim@example.com --role admin",
        ("Invited tim@example.com as admin.",),
        then=("invite list", "tim@"),
    ),
    Case("invite resend mary@example.com", ("Renewed the invitation of mary@example.com.",)),
    Case("invite cancel mary@example.com", ("Canceled the",), then=("invite list", "No invitations are pending")),
    Case("billing show", ("Plan:\tPro", "Credits:\t500", "Projects:\t1 of 200", "API access:\tyes", "Top-up:\toff")),
    Case("audit-log list --since 1d --action scan.complete", ("\tscan.complete\tshop\tservice ",)),
    Case("webhook list", ("Alerts\thttps://hooks.example.com/assent\tfinding.opened, ", "\tenabled\t{webhook}")),
    Case(
        "webhook create Chat https://hooks.example.com/chat --event credits.low",
        ("Created the endpoint Chat: whk_", "Store the secret now", "whsec_"),
        then=("webhook list", "Chat\t"),
    ),
    Case("webhook delete {webhook} --yes", ("Deleted {webhook}.",), then=("webhook list", "There are no webhook")),
    Case("webhook deliveries {webhook}", ("credits.low\tpending\t0\t", "\t{event}")),
    Case("webhook replay {webhook} {event}", ("{event} is being sent again.",)),
]
# These have tests of their own.
ELSEWHERE = {"login", "logout", "ci", "mcp", "scan local"}
