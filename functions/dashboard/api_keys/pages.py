"""The pages of API keys: list, create, roll, and revoke. A secret is only ever in the response that creates it."""

from collections.abc import Mapping, Sequence

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import rules
from controlplane.api_keys import store as api_keys
from controlplane.api_keys import usage as key_usage
from controlplane.api_keys.items import ApiKeyItem, KeyDraft
from controlplane.api_keys.rules import UNKNOWN_PROJECT, find_unknown
from controlplane.api_keys.store import UnknownKey
from controlplane.api_keys.usage import DayUsage
from controlplane.organizations import store as organizations
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.ids import KeyId
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION, PLANS
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import read_both, reading
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from dashboard import once
from dashboard.api_keys import forms
from dashboard.charts import Chart, Series, bars, labels_of_days
from dashboard.forms import NotAcceptable
from dashboard.once import Created
from dashboard.pages import page, redirect_within
from dashboard.parameters import AdminSubmits, AdminSubmitsMany, KeyPath, MemberSees

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_CREATED_FROM = "dashboard"
# A key can be limited to one of the newest projects. The API accepts any.
_OFFERED_PROJECTS = 50
_DONE = {
    "revoked": "The key is revoked. Its secret has stopped working.",
    "ended": "The old secret has stopped working.",
}


@router.get("/organizations/{organizationSlug}/keys")
async def show_keys(session: MemberSees) -> Response:
    """Lists the organization's API keys. Admins and owners can create others if the plan has API access."""
    return _keys(session)


@router.post("/organizations/{organizationSlug}/keys")
async def submit_key(session: AdminSubmitsMany) -> Response:
    """Creates a key and shows its secret. Sending the same form again shows the same secret."""
    try:
        draft = forms.read_draft(session.form)
        created = _create(session, draft)
    except ApiError as failure:
        return _keys(session, failure)
    return _secret(session, created, name=draft.name)


@router.get("/organizations/{organizationSlug}/keys/{keyId}")
async def show_key(session: MemberSees, key_id: KeyPath) -> Response:
    """Shows a key. Admins and owners can roll and revoke it."""
    return _key(session, key_id)


@router.post("/organizations/{organizationSlug}/keys/{keyId}/roll")
async def submit_key_roll(session: AdminSubmits, key_id: KeyPath) -> Response:
    """Replaces the key and shows the new secret. Sending the same form again shows the same secret."""
    try:
        grace_seconds = forms.read_grace_period(session.form)
        created = _roll(session, key_id, grace_seconds)
    except UnknownKey:
        raise
    except ApiError as failure:
        return _key(session, key_id, failure)
    return _secret(session, created, grace_seconds=grace_seconds)


@router.post("/organizations/{organizationSlug}/keys/{keyId}/revoke")
async def submit_key_revocation(session: AdminSubmits, key_id: KeyPath) -> Response:
    """Revokes the key, or the old secret of the key that replaced it."""
    own_id = session.own(KeyId, key_id, UnknownKey)
    left = key_changes.delete_key(own_id, admin_id=session.user_id)
    return redirect_within(session.organization, f"/keys/{left}?done=ended" if left else "/keys?done=revoked")


def _create(session: WebSession, draft: KeyDraft) -> Created:
    """Creates the key, and reads what that needs at the same time as the form's value is claimed."""
    organization_id, wanted = session.organization.organization_id, draft.restrictions.project_ids or ()

    def create(legs: Mapping[str, Leg], secret: str) -> str:
        known, unknown = find()
        if unknown:
            raise NotAcceptable(UNKNOWN_PROJECT)
        minted = api_keys.create_key(
            organization_id,
            draft,
            session.user_id,
            _CREATED_FROM,
            admin_id=session.user_id,
            extra_legs=legs,
            secret=secret,
            known=known,
        )
        return minted.item.key_id

    with reading(
        lambda: read_both(
            lambda: organizations.find_organization(organization_id),
            lambda: find_unknown(organization_id, wanted),
        )
    ) as find:
        return once.create_secret_once(session, "createKeyOnPage", create)


def _roll(session: WebSession, key_id: str, grace_seconds: int) -> Created:
    own_id = session.own(KeyId, key_id, UnknownKey)

    def roll(legs: Mapping[str, Leg], secret: str) -> str:
        minted = api_keys.roll_key(
            own_id,
            session.user_id,
            _CREATED_FROM,
            grace_seconds=grace_seconds,
            admin_id=session.user_id,
            extra_legs=legs,
            secret=secret,
            known=find(),
        )
        return minted.item.key_id

    with reading(lambda: api_keys.find_key(own_id)) as find:
        return once.create_secret_once(session, f"rollKeyOnPage {key_id}", roll)


def _keys(session: WebSession, failure: ApiError | None = None) -> Response:
    organization_id = session.organization.organization_id
    organization, (listed, found) = read_both(
        lambda: organizations.get_organization(organization_id),
        lambda: read_both(
            lambda: api_keys.list_keys(organization_id, API_KEYS_PER_ORGANIZATION, None, consistent=True),
            lambda: projects.list_projects(organization_id, _OFFERED_PROJECTS, None),
        ),
    )
    return page(
        "keys",
        session,
        failure,
        done=_DONE,
        plan=PLANS[organization.plan],
        total=organization.keys,
        limit=API_KEYS_PER_ORGANIZATION,
        keys=listed.items,
        scopes=forms.SCOPE_CHOICES,
        # Those that a new key can be limited to, by their fields of the form.
        projects={forms.project_field(it.project_id): it.name for it in found.items},
    )


def _key(session: WebSession, key_id: str, failure: ApiError | None = None) -> Response:
    organization, key = api_keys.get_key(session.own(KeyId, key_id, UnknownKey))
    (usage, used), limited_to = read_both(
        lambda: read_both(lambda: key_usage.find_usage([key]), lambda: key_usage.find_previous_uses([key])),
        lambda: _list_project_names(key),
    )
    days = usage.get(key.key_id)
    return page(
        "key",
        session,
        failure,
        done=_DONE,
        plan=PLANS[organization.plan],
        key=key,
        projects=limited_to,
        chart=usage_chart(days) if days else None,
        # The last use of an old secret that works since the roll.
        previous_used_at=used.get(key.key_id),
        grace_periods=forms.GRACE_PERIODS,
    )


def _list_project_names(key: ApiKeyItem) -> list[str]:
    """Returns the names of the projects that the key is limited to, or the IDs of those that don't exist anymore."""
    wanted = key.restrictions.project_ids
    if wanted is None:
        return []
    found = rules.list_projects(wanted, len(wanted), None).items
    names: dict[str, str] = {it.project_id: it.name for it in found}
    return [names.get(it, it) for it in wanted]


def usage_chart(usage: Sequence[DayUsage]) -> Chart:
    """Returns the requests by day, those over the key's limit on top."""
    accepted = Series("Requests", [it.requests - it.refused for it in usage])
    refused = Series("Refused", [it.refused for it in usage], "problem")
    return bars("Requests by day", labels_of_days(it.day for it in usage), [accepted, refused])


def _secret(session: WebSession, created: Created, *, name: str | None = None, grace_seconds: int = 0) -> Response:
    grace_period = forms.GRACE_PERIODS[str(grace_seconds)] if grace_seconds else None
    return page("key_secret", session, secret=created.secret, name=name, grace_period=grace_period)
