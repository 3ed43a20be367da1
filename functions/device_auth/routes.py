"""Routes of `device_auth`: the unauthenticated endpoints that devices call, in JSON or OAuth form encoding."""

from typing import Annotated

from controlplane.access.anonymous import Anonymous, AnonymousCaller
from controlplane.people.device import FIRST_INTERVAL_SECONDS, LIFE_SECONDS
from controlplane.people.token_families import Pair, RefreshRefused
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.route import refuses
from device_auth import service
from device_auth.dialect import MEDIA_TYPE, OAuthForm
from device_auth.schemas import (
    DEVICE_GRANT,
    REFRESH_GRANT,
    DeviceCode,
    DeviceCodeCreate,
    Revocation,
    Token,
    TokenCreate,
    TokenRevoke,
)

router = ControlRouter(tags=["Device authorization"])

CODES_PER_MINUTE = 10
TOKENS_PER_MINUTE = 30


def _anonymous(counter: str, per_minute: int, *required: str) -> Anonymous:
    return Anonymous(
        counter, per_minute, lambda: settings.device_authorization_enabled, {MEDIA_TYPE: OAuthForm(required)}
    )


RequestsCode = Annotated[AnonymousCaller, _anonymous("device.code", CODES_PER_MINUTE)]
RequestsToken = Annotated[AnonymousCaller, _anonymous("device.token", TOKENS_PER_MINUTE, "grant_type")]
# Shares the token endpoint's rate limit: both look up a secret.
RevokesToken = Annotated[AnonymousCaller, _anonymous("device.token", TOKENS_PER_MINUTE)]


@router.post("/v1/auth/device/code", summary="Request a device code", status_code=201)
@refuses(service.UnknownClient, service.InvalidScope)
async def create_device_code(caller: RequestsCode, body: DeviceCodeCreate) -> DeviceCode:
    """Starts device authorization with a PKCE code challenge (S256). Limited to 10 requests a minute per IP address.

    Show `verificationUri` and `userCode` to the user, then poll `POST /v1/auth/device/token`. This endpoint also
    accepts the form-encoded request of RFC 8628, and then responds as RFC 8628 specifies: status 200, no envelope.
    """
    issued = service.request_code(body.client_id, body.code_challenge, body.scope, body.device_name, caller.address)
    page = f"{dashboard_base_url()}/device"
    return DeviceCode(
        device_code=issued.device_code,
        user_code=issued.user_code,
        verification_uri=page,
        verification_uri_complete=f"{page}?user_code={issued.user_code}",
        expires_in=LIFE_SECONDS,
        interval=FIRST_INTERVAL_SECONDS,
    )


@router.post("/v1/auth/device/token", summary="Exchange a device code or refresh token")
@refuses(
    service.UnsupportedGrant,
    service.UnknownClient,
    service.InvalidScope,
    service.AuthorizationPending,
    service.PolledTooSoon,
    service.CodeUsed,
    service.CodeExpired,
    service.WrongVerifier,
    RefreshRefused,
    service.AccessDenied,
)
async def create_device_token(_caller: RequestsToken, body: TokenCreate) -> Token:
    """Exchanges an approved device code or a refresh token for tokens. Limited to 30 requests a minute per IP address.

    Until the user decides, `details.status` is `authorization_pending`: poll again after the interval. If you poll too
    often, it is `slow_down`: add 5 seconds to the interval. A device code works once. Redeeming it again returns
    `used` and revokes its tokens.

    A refresh token works once. Using it again within 60 seconds returns the same new pair; after that, it revokes
    every token of the approval. This endpoint also accepts the form-encoded requests of RFC 8628 and RFC 6749, and
    then responds as they specify: errors with status 400, no envelope.
    """
    if _grant(body) == DEVICE_GRANT:
        device_code, verifier, client_id = _needed(body, "device_code", "code_verifier", "client_id")
        return _token(service.redeem(device_code, verifier, client_id))
    (refresh_token,) = _needed(body, "refresh_token")
    return _token(service.refresh(refresh_token, body.client_id, body.scope))


@router.post("/v1/auth/device/revoke", summary="Revoke tokens")
@refuses(service.UnknownClient, service.UnsupportedToken)
async def revoke_device_token(_caller: RevokesToken, body: TokenRevoke) -> Revocation:
    """Revokes an access token or a refresh token, along with every token of the same approval, immediately.

    Shares the limit of 30 requests a minute with `POST /v1/auth/device/token`. Unknown and revoked tokens aren't
    errors. This endpoint also accepts the form-encoded request of RFC 7009.
    """
    service.revoke(body.token, body.client_id)
    return Revocation(revoked=True)


def _grant(body: TokenCreate) -> str:
    """Returns the grant type, inferred from the other fields if omitted. Raises UnsupportedGrant."""
    grant = body.grant_type
    if grant is None:
        grant = REFRESH_GRANT if body.refresh_token is not None and body.device_code is None else DEVICE_GRANT
    if grant not in {DEVICE_GRANT, REFRESH_GRANT}:
        raise service.UnsupportedGrant
    return grant


def _needed(body: TokenCreate, *names: str) -> list[str]:
    """Returns the values of the fields that the grant needs. Raises InvalidPayload with the missing fields."""
    found = {name: getattr(body, name) for name in names}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        aliases = [TokenCreate.model_fields[name].alias for name in missing]
        details = [{"code": "missing", "message": "Field required", "path": [alias]} for alias in aliases]
        raise InvalidPayload(details=details)
    return list(found.values())


def _token(pair: Pair) -> Token:
    return Token(
        access_token=pair.access_token,
        expires_in=pair.expires_in,
        refresh_token=pair.refresh_token,
        scope=" ".join(pair.scopes),
    )
