"""An endpoint that resolves its organization late has none until it does so."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.access.access import Access, Requires
from controlplane.access.authentication import Principal, key_organization
from controlplane.access.web_session import WebSession
from controlplane.api_keys.items import KeySecretItem
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.ids import KeyId
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


@pytest.mark.parametrize(("query", "body"), [(None, OWN), (OWN, None), (OWN, OWN)])
def test_query_or_body_may_name_the_organization(query: str | None, body: str | None):
    access = admitted(query)
    access.enter(body)
    assert access.organization_id == OWN


@pytest.mark.parametrize(("query", "body"), [(None, "org_other"), ("org_other", None), ("org_other", "org_other")])
def test_another_organization_is_forbidden_in_query_and_body(query: str | None, body: str | None):
    with pytest.raises(Forbidden):
        admitted(query).enter(body)


def test_different_organizations_in_query_and_body_are_rejected_before_either_is_read():
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
def test_what_a_caller_or_its_route_does_not_have_is_an_error(read: Callable[[], Any]):
    with pytest.raises(LookupError):
        read()
