"""Every form whose values can't be used: it says why, keeps what was entered, and changes nothing."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from controlplane.platform.queues.events import WEBHOOK_EVENTS
from tests.functional.dashboard.conftest import HOSTILE
from tests.support.browser import text_of
from tests.support.endpoints import URL
from tests.support.page import Page
from tests.support.reply import Reply
from tests.support.subject import Subject
from tests.support.world import uncounted


class Form(NamedTuple):
    """A button of a page, whose address starts at the organization's. Braces name a part of the `Subject`."""

    page: str
    label: str
    near: str = ""


# For each form, the fields that are sent instead of its own, and what the page says. The status is 400, unless given.
_PROJECT, _LONG_LIST = "projects/{projectSlug}", "\n".join(f"s{number}.example.com" for number in range(51))
type Refusal = tuple[Mapping[str, str | None], str] | tuple[Mapping[str, str | None], str, int]
REFUSED: dict[Form, list[Refusal]] = {
    Form("projects/new", "Create the project"): [
        ({"name": ""}, "Enter a name"),
        ({"name": "Shop", "region": "moon"}, "no such region"),
        ({"name": "Shop", "websites": "shop.example.com\nnot a site"}, "not a site: "),
        ({"name": "Shop", "websites": _LONG_LIST}, "at most 50 websites"),
        ({"name": "Shop", "websites": HOSTILE}, "alert(1)"),
    ],
    Form(f"{_PROJECT}/settings", "Save", "Description"): [
        ({"name": "\u202e"}, "Enter a name"),
        ({"description": "x" * 513}, "at most 512"),
        ({"action": "explode"}, "Choose what to change"),
        ({"action": "make-primary", "website_id": "x"}, "There is no such resource.", 404),
        ({"action": "remove-website", "website_id": "x"}, "There is no such resource.", 404),
    ],
    Form(f"{_PROJECT}/settings", "Save", "Name in the banner"): [({"branding": "mine"}, "Choose one of the brandings")],
    Form(f"{_PROJECT}/settings", "Add"): [
        ({"websites": " "}, "Enter at least one address"),
        ({"websites": HOSTILE}, "alert(1)"),
    ],
    Form(f"{_PROJECT}/delete", "Delete this project"): [
        ({"confirmation": ""}, "Nothing was deleted."),
        ({"confirmation": HOSTILE}, "Nothing was deleted."),
    ],
    Form(f"{_PROJECT}/vendors", "Approve"): [
        ({"vendor_id": HOSTILE}, "Enter the vendor's ID"),
        ({"vendor_id": "segment", "decision": "maybe"}, "Choose whether to approve"),
        ({"vendor_id": "never-seen"}, "the catalog doesn't have it", 404),
    ],
    Form(f"{_PROJECT}/audits", "Audit this website"): [
        ({"website_id": "web_nope"}, "There is no such resource.", 404),
        ({"schedule": "hourly"}, "Choose one of the schedules, or none."),
    ],
    Form(f"{_PROJECT}/audits/{{auditId}}", "Save"): [({"schedule": "hourly"}, "Choose one of the schedules")],
    Form("keys", "Create key"): [
        ({"name": "  "}, "Enter a name"),
        ({"name": HOSTILE, "once": "short"}, "This form is incomplete"),
        ({"name": "CI", "allowed_ips": "example.com"}, "Send an address or a network"),
        ({"name": "CI", "allowed_ips": " ".join(["10.0.0.1"] * 21)}, "Enter up to 20"),
        ({"name": "CI", "expires_on": "soon"}, "Enter the expiry as a date"),
        ({"name": "CI", "description": "x" * 513}, "Enter a description of up to 512"),
        ({"name": "CI", "project-prj_x": "yes"}, "The organization has no such project"),
        ({"name": "CI", "project-{foreignProjectId}": "yes"}, "The organization has no such project"),
    ],
    Form("keys/{keyId}", "Roll this key"): [({"grace_period": "999999"}, "Choose how long the old secret still works")],
    Form("webhooks", "Create endpoint"): [
        ({"name": " ", "url": HOSTILE}, "Enter a name"),
        ({"name": "Alerts", "url": "http://hooks.example.com"}, "must start with https"),
        ({"name": "Alerts", "url": URL, "format": HOSTILE}, "Choose a format."),
        ({"name": "Alerts", "url": URL, **dict.fromkeys(WEBHOOK_EVENTS)}, "Select at least one event."),
    ],
    Form("webhooks/{webhookId}", "Save"): [({"url": "ftp://hooks.example.com"}, "must start with https")],
    Form("members", "Invite"): [
        ({"email": "x"}, "Enter an email address"),
        ({"email": HOSTILE}, "Enter an email address"),
        ({"email": "new@example.com", "role": "chief"}, "Choose a role"),
        ({"email": "{ownersAddress}"}, "belongs to a member", 409),
    ],
    Form("repositories/{unlinkedRepositoryId}", "Link this project"): [
        ({"production_branch": "a b"}, "can't be the name of a branch"),
        ({"root_directory": "../apps"}, "relative to the repository's root"),
        ({"root_directory": "apps/web", "schedule": "hourly"}, "Choose one of the schedules"),
        ({"root_directory": "apps/web", "failure_threshold": ""}, "Choose one of the schedules"),
        ({"project_id": "prj_x"}, "Choose a project."),
        ({"action": "unlink"}, "This project isn't linked."),
    ],
    Form("inbox?priority={itemId}", "Dismiss"): [
        ({"reason": "because"}, "Select"),
        ({"item-{itemId}": "{version}", "action": "deleted", "reason": "because"}, "Choose what to do"),
        ({"item-{itemId}": "{version}", "reason": "because" * 200}, "The reason can have 1,000 characters."),
    ],
    Form("inbox/{itemId}", "Accept"): [
        ({"action": "closed"}, "Choose what to do"),
        ({"reason": "x" * 1001}, "The reason can have 1,000 characters."),
        ({"action": "undo"}, "The former status of this finding isn't known."),
    ],
    Form("inbox/{itemId}", "Comment"): [
        ({"text": "x" * 979, "mention": "usr_0000000000000000"}, "1 to 1,000 characters, with those whom it mentions"),
        ({"text": "x" * 1_001}, "A comment has 1 to 1,000 characters"),
        ({"text": "", "mention": "usr_0000000000000000"}, "A comment has 1 to 1,000 characters"),
        ({"text": "look", "mention": "x" * 60_000}, "Choose a member to mention."),
        ({"text": "look", "mention": "usr_1 usr_0000000000000000"}, "Choose a member to mention."),
        ({"text": "look", "once": ""}, "This form is incomplete"),
    ],
    Form("inbox/{vendorItemId}", "Approve"): [({"decision": "delete"}, "Choose to approve or to ignore the vendor")],
    Form("scans?repository={repositoryId}", "Start scan"): [
        ({"subject": ""}, "Choose a repository and a project."),
        ({"subject": "x"}, "Choose a repository and a project."),
        ({"subject": "x {projectId}"}, "This repository isn't connected anymore.", 404),
        ({"subject": "{foreignRepositoryId} {foreignProjectId}"}, "This repository isn't connected anymore.", 404),
        ({"subject": "{repositoryId} {foreignProjectId}"}, "The repository isn't linked", 409),
    ],
    Form("new", "Create the organization"): [
        ({"name": HOSTILE + "\u202e"}, "Enter a name"),
        ({"name": "Acme", "slug": "a--b"}, "A slug has 3 to 20"),
    ],
    Form("delete", "Delete this organization"): [
        ({"confirmation": "acme"}, "isn't the organization's name or slug. Nothing was deleted."),
    ],
}


class Parts:
    """The parts of a subject, and of another organization."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.foreign = subject, Subject(subject.world, subject.api)

    def fill(self, text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self._find(found[1]), text)

    def _find(self, name: str) -> str:
        if name == "ownersAddress":
            return self.subject.owner.email
        own = name.removeprefix("foreign")
        return self.subject[name] if own == name else self.foreign[own[0].lower() + own[1:]]


def entered(reply: Reply) -> set[tuple[str, str]]:
    """Returns the names and contents of the page's fields for text, and of its boxes that are checked."""
    found = Page(reply.text).root.find("input", "textarea")
    fields = [(it.attributes.get("name", ""), it.value) for it in found if it.attributes.get("type") != "hidden"]
    return {(name, value) for name, value in fields if value is not None}


@pytest.mark.parametrize("form", REFUSED, ids=" ".join)
def test_a_form_with_an_unusable_value_says_why_keeps_what_was_entered_and_changes_nothing(form, api, world):
    subject = Subject(world, api)
    browser, parts = subject.browser, Parts(subject)
    page, label, near = map(parts.fill, form)
    own = "/organizations/" if page == "new" else f"/organizations/{subject.company.slug}/"
    for fields, message, *status in REFUSED[form]:
        sent = {parts.fill(name): parts.fill(value) if value else value for name, value in fields.items()}
        before = dict(entered(browser.get(own + page)))
        kept = {(name, value) for name, value in {**before, **sent}.items() if name in before and value is not None}
        stored = uncounted()
        reply = browser.press(label, near=near, forged=sent)
        assert (reply.status, message in text_of(reply)) == (*(status or [400]), True), (sent, text_of(reply))
        assert kept <= entered(reply), sent
        assert uncounted() == stored
