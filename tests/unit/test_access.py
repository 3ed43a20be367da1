"""Requirements of routes, late organizations, and the actor that entries of the audit log name."""

import pytest

from controlplane.access.access import Access, Requires, Resource
from controlplane.access.authentication import Principal, key_organization
from controlplane.access.web_session import WebSession
from controlplane.api_keys.items import KeySecretItem
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import acting
from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.ids import KeyId, ProjectId
from controlplane.platform.table import keys
from controlplane.platform.table.rate import Counted

OWN = "org_0123456789abcdef"


def admitted(named: str | None, *, late: bool = True) -> Access[None]:
    """Returns a key's access as passed to an endpoint whose query names that organization."""
    key = KeySecretItem(
        digest="9f86d0",
        key_id=KeyId.of(OWN, "01kb2m3n4p5q6r7s8t"),
        organization_id=OWN,
        slug="acme",
        name="Acme",
        plan="pro",
        created_by="usr_8k",
        rate_limit=1500,
    )
    principal = Principal("api_key", (), key_id=key.key_id, organization_id=OWN, key=key)
    access: Access[None] = Access(principal, Counted(600, 1, 0))
    Requires(organization="query", late=late).resolve(access, named)
    return access


def test_late_access_has_no_organization_before_enter():
    access = admitted(None)
    with pytest.raises(LookupError):
        _ = access.organization_id
    access.enter()
    assert access.organization_id == OWN


def test_query_or_body_may_name_the_own_organization_and_no_other():
    for query, body in ((None, OWN), (OWN, None), (OWN, OWN)):
        access = admitted(query)
        access.enter(body)
        assert access.organization_id == OWN
    for query, body in ((None, "org_other"), ("org_other", None), ("org_other", "org_other")):
        with pytest.raises(Forbidden):
            admitted(query).enter(body)
    # Before either is read.
    with pytest.raises(InvalidPayload):
        admitted(OWN).enter("org_other")


@pytest.mark.parametrize(
    "read",
    [
        lambda: admitted(None, late=False).enter(),
        lambda: admitted(None, late=False).enter_while(str),
        lambda: admitted(None).enter_while(str),
        lambda: admitted(None).plan,
        lambda: admitted(None).user_id,
        lambda: key_organization(Principal("oauth", (), user_id="usr_8k")),
        lambda: WebSession("198.51.100.7").user_id,
    ],
    ids=["enter", "enter while reading", "resource", "plan", "user of a key", "organization of a user", "session"],
)
def test_what_a_caller_or_its_route_does_not_have_is_an_error(read):
    with pytest.raises(LookupError):
        read()


def test_a_route_accepts_keys_if_they_can_have_a_scope_of_it():
    for requires, expected in (
        (Requires(), True),
        (Requires(scope="projects.read"), True),
        (Requires(scope="vendors.write"), False),
        (Requires(scope="vendors.write", or_scope="projects.read"), True),
        (Requires(user_token=True), False),
        (Requires(scope="projects.read", user_token=True), False),
    ):
        assert requires.accepts_keys is expected, requires


def test_a_route_keeps_to_projects_if_it_says_so_or_its_resource_is_of_one():
    item = Resource("projectId", ProjectId, keys.project, dict)
    for requires, expected in (
        (Requires(), False),
        (Requires(projects="filtered"), True),
        (Requires(projects="untouched"), True),
        (Requires(resource=item), False),
        (Requires(resource=item._replace(project_of=str)), True),
    ):
        assert requires.keeps_to_projects is expected, requires


def test_a_request_has_an_id_and_an_actor_only_once_its_credential_is_authenticated(monkeypatch):
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "sweeper")
    with acting.request("request-1"):
        assert acting.request_id() == "request-1"
        with pytest.raises(LookupError):
            acting.current()
        ada = Actor("person", "usr_1", "api")
        acting.identify(ada)
        assert acting.current() == (ada, "request-1")
    assert acting.request_id() is None
    assert acting.current() == (Actor("service", "sweeper", "worker"), None)


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
