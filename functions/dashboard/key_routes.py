"""The pages of API keys: list, create, roll, and revoke. A secret is only ever in the response that creates it."""

from fastapi import Response

from controlplane.access.web_session import WebSession
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.rules import own_key
from controlplane.api_keys.store import UnknownKey
from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import reading
from dashboard import key_forms, keys, once
from dashboard.once import Created
from dashboard.organizations import get_organization, is_admin
from dashboard.page_parameters import Done, KeyPath, OrganizationSlug, SignedIn, Submits, SubmitsMany
from dashboard.pages import address, page, redirect

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_DONE = {"revoked": "The key is revoked. Its secret has stopped working."}
_DONE_OF_KEY = {"ended": "The old secret has stopped working."}


@router.get("/organizations/{organizationSlug}/keys", operation_id="showKeys")
async def show_keys(session: SignedIn, organization_slug: OrganizationSlug, done: Done = "") -> Response:
    """Lists the organization's API keys. Admins and owners can create others if the plan has API access."""
    return _keys(session, organization_slug, done=_DONE.get(done))


@router.post("/organizations/{organizationSlug}/keys", operation_id="submitKey")
async def submit_key(session: SubmitsMany, organization_slug: OrganizationSlug) -> Response:
    """Creates a key and shows its secret. Sending the same form again shows the same secret."""
    organization, user_id = get_organization(organization_slug, session.account), session.user_id
    try:
        draft = key_forms.read_draft(session.form)
        with reading(lambda: keys.find_owner(organization, draft)) as find:
            created = once.create_secret_once(
                session,
                organization,
                "createKeyOnPage",
                lambda legs, secret: keys.create_key(organization, draft, user_id, legs, secret, find=find).item.key_id,
            )
    except ApiError as failure:
        return _keys(session, organization_slug, failure=failure)
    return _secret(session, organization, created, name=draft.name)


@router.get("/organizations/{organizationSlug}/keys/{keyId}", operation_id="showKey")
async def show_key(
    session: SignedIn, organization_slug: OrganizationSlug, key_id: KeyPath, done: Done = ""
) -> Response:
    """Shows a key. Admins and owners can roll and revoke it."""
    return _key(session, organization_slug, key_id, done=_DONE_OF_KEY.get(done))


@router.post("/organizations/{organizationSlug}/keys/{keyId}/roll", operation_id="submitKeyRoll")
async def submit_key_roll(session: Submits, organization_slug: OrganizationSlug, key_id: KeyPath) -> Response:
    """Replaces the key and shows the new secret. Sending the same form again shows the same secret."""
    organization, user_id = get_organization(organization_slug, session.account), session.user_id
    try:
        grace_seconds, own_id = key_forms.read_grace_period(session.form), own_key(organization.organization_id, key_id)
        with reading(lambda: api_keys.find_key(own_id)) as find:
            created = once.create_secret_once(
                session,
                organization,
                f"rollKeyOnPage {key_id}",
                lambda legs, secret: (
                    keys.roll_key(
                        organization, own_id, user_id, legs, secret, find=find, grace_seconds=grace_seconds
                    ).item.key_id
                ),
            )
    except UnknownKey:
        raise
    except ApiError as failure:
        return _key(session, organization_slug, key_id, failure=failure)
    return _secret(session, organization, created, grace_seconds=grace_seconds)


@router.post("/organizations/{organizationSlug}/keys/{keyId}/revoke", operation_id="submitKeyRevocation")
async def submit_key_revocation(session: Submits, organization_slug: OrganizationSlug, key_id: KeyPath) -> Response:
    """Revokes the key, or the old secret of the key that replaced it."""
    organization = get_organization(organization_slug, session.account)
    left = keys.revoke_key(organization, key_id, session.user_id)
    return redirect(
        address(f"/organizations/{organization.slug}/keys{f'/{left}?done=ended' if left else '?done=revoked'}")
    )


def _keys(
    session: WebSession, organization_slug: str, *, failure: ApiError | None = None, done: str | None = None
) -> Response:
    shown = keys.get_keys(organization_slug, session.account)
    return page(
        "keys",
        session,
        failure=failure,
        done=done,
        **shown._asdict(),
        limit=API_KEYS_PER_ORGANIZATION,
        scopes=key_forms.SCOPE_CHOICES,
        entered=session.form,
        **_form(shown.organization, failure, session),
    )


def _key(
    session: WebSession,
    organization_slug: str,
    key_id: str,
    *,
    failure: ApiError | None = None,
    done: str | None = None,
) -> Response:
    shown = keys.get_key(organization_slug, key_id, session.account)
    periods = key_forms.GRACE_PERIODS
    content = {**shown._asdict(), "grace_periods": periods, **_form(shown.organization, failure, session)}
    return page("key", session, failure=failure, done=done, **content)


def _form(organization: Membership, failure: ApiError | None, session: WebSession) -> dict[str, object]:
    """Returns the content of a form that creates a key."""
    return {**once.form_content(session, failure), "is_admin": is_admin(organization)}


def _secret(
    session: WebSession,
    organization: Membership,
    created: Created,
    *,
    name: str | None = None,
    grace_seconds: int = 0,
) -> Response:
    grace_period = key_forms.GRACE_PERIODS[str(grace_seconds)] if grace_seconds else None
    return page(
        "key_secret", session, organization=organization, secret=created.secret, name=name, grace_period=grace_period
    )
