"""The session of a page."""

from controlplane.access.web_session import WebSession
from controlplane.organizations.store import Account, Membership


def test_a_sessions_repr_has_no_secret_and_nothing_that_the_person_sent():
    membership = Membership(organization_id="org_1", slug="hidden", name="hidden", role="owner")
    session = WebSession(
        "198.51.100.7",
        cookies={"session": "hidden"},
        body=b"hidden",
        secret="hidden",
        form={"form_token": "hidden"},
        known_account=Account(None, [membership]),
    )
    assert "hidden" not in repr(session)
