"""Looks at the pages of emails, and at the emails themselves."""

from collections.abc import Callable

from controlplane.platform.core import ids
from emails.text import compose, shown_name
from tests.browser.conftest import LOOKS, Stack, Visit

# An email has no landmarks: email programs show it inside their own.
EMAIL = {"region", "landmark-one-main"}
HOME = "https://app.example.com"
FINDING = {
    "title": "Google Analytics loads before the visitor has given consent",
    "place": "storefront",
    "link": f"{HOME}/organizations/acme/inbox/1",
}
SHARED = {
    "organization": shown_name("Acme Retail"),
    "unsubscribe": f"{HOME}/account/unsubscribe/x",
    "notifications": f"{HOME}/account/notifications",
    "link": f"{HOME}/organizations/acme",
}
EMAILS = {
    "invitation": {"inviter": "Ada Lovelace", "role": "an admin", "until": "March 11, 2026"},
    "finding": {"count": 4, "more": 1, "findings": [FINDING] * 3},
    "credits": {"credits": 60, "price": 50, "scans": "one more scan"},
    "webhook": {},
    "key": {
        "name": shown_name("Production deploys"),
        "start": "assent_Ab3x",
        "place": "https://github.com/octocat/hello-world/blob/1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5/.env#L3",
    },
    "digest": {
        "week": "March 2 to March 8",
        "lines": [("Completed scans", "12"), ("New findings", "9"), ("Fixed findings", "14"), ("Open findings", "31")],
        "findings": [FINDING] * 2,
    },
}


@LOOKS
class TestEmails:
    def test_a_person_chooses_emails_and_resends_an_invitation(
        self, stack: Stack, visit: Callable[..., Visit], width, scheme
    ):
        person = visit(width, scheme)
        person.open("/account/notifications")
        person.sign_in(stack.person())
        person.look("Notifications", "notifications")
        person.page.get_by_label("Weekly digest").first.uncheck()
        person.page.get_by_role("button", name="Save").first.click()
        person.look("Notifications", "notifications-saved")
        assert not person.page.get_by_label("Weekly digest").first.is_checked()
        person.open("/organizations/acme/members")
        person.page.get_by_label("Email address").fill(f"guest-{ids.new_part()}@example.com")
        person.press("Invite")
        person.page.get_by_role("button", name="Resend").first.click()
        person.page.get_by_text("another email is on its way").wait_for()
        person.look("Members", "members-resent")
        person.open("/account/unsubscribe/x")
        person.look("This link can't be used", "unsubscribe-unknown")
        person.open("/invitations/inv_unknown")
        person.look("This invitation isn't open", "invitation-not-open")

    def test_every_email_can_be_read(self, stack: Stack, visit: Callable[..., Visit], width, scheme):
        person = visit(width, scheme)
        for about, values in EMAILS.items():
            content = compose(about, **SHARED, **values)
            parts = {"Text": {"Data": content.text}, "Html": {"Data": content.html}}
            simple = {"Subject": {"Data": content.subject}, "Body": parts}
            sent = {
                "FromEmailAddress": "Assent <no-reply@assent.example>",
                "Destination": {"ToAddresses": ["grace@example.com"]},
                "Content": {"Simple": simple},
            }
            status, answer = stack.call("/mail-stand-in/v2/email/outbound-emails", sent)
            assert status == 200
            name = answer["MessageId"]
            person.open(f"/mail-stand-in/{name}/html")
            person.look("", f"email-{about}", EMAIL)
        person.open("/mail-stand-in/")
        person.look("Emails", "emails", EMAIL)
        person.open(f"/mail-stand-in/{name}")
        person.look("", "email-in-the-stand-in", EMAIL)
