"""HTTP of `device_auth`: the endpoints a device calls, without a credential, in JSON or as OAuth has them."""

from typing import Annotated

from controlplane.anonymous import Anonymous, Stranger
from controlplane.app import ControlRouter
from controlplane.described import refuses
from controlplane.errors import InvalidPayload
from controlplane.store.device import FIRST_INTERVAL_SECONDS, LIFE_SECONDS
from controlplane.store.token_families import Pair
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


def _by_anyone(counter: str, per_minute: int, *required: str) -> Anonymous:
    return Anonymous(counter, per_minute, service.is_enabled, {MEDIA_TYPE: OAuthForm(required)})


AsksForCode = Annotated[Stranger, _by_anyone("device.code", CODES_PER_MINUTE)]
AsksForToken = Annotated[Stranger, _by_anyone("device.token", TOKENS_PER_MINUTE, "grant_type")]
# Shares its limit with the tokens: both look a secret up.
RevokesToken = Annotated[Stranger, _by_anyone("device.token", TOKENS_PER_MINUTE)]


@router.post("/v1/auth/device/code", operation_id="createDeviceCode", summary="Ask for a device code", status_code=201)
@refuses(service.UnknownClient, service.InvalidScope)
async def create_device_code(stranger: AsksForCode, body: DeviceCodeCreate) -> DeviceCode:
    """Asks to let a device in, bound to a proof key (PKCE, S256): 10 times a minute from one client address.

    Show the person `verificationUri` and `userCode`, then poll `POST /v1/auth/device/token`. The same address takes
    RFC 8628's form-encoded request and answers it as RFC 8628 says: status 200, no envelope.
    """
    issued = service.request_code(body.client_id, body.code_challenge, body.scope, body.device_name, stranger.address)
    page = service.verification_uri()
    return DeviceCode(
        device_code=issued.device_code,
        user_code=issued.user_code,
        verification_uri=page,
        verification_uri_complete=f"{page}?user_code={issued.user_code}",
        expires_in=LIFE_SECONDS,
        interval=FIRST_INTERVAL_SECONDS,
    )


@router.post("/v1/auth/device/token", operation_id="createDeviceToken", summary="Redeem a device code or renew tokens")
@refuses(
    service.UnsupportedGrant,
    service.UnknownClient,
    service.InvalidScope,
    service.AuthorizationPending,
    service.PolledTooSoon,
    service.CodeUsed,
    service.CodeExpired,
    service.WrongVerifier,
    service.RefreshRefused,
    service.AccessDenied,
)
async def create_device_token(_stranger: AsksForToken, body: TokenCreate) -> Token:
    """Redeems an approved device code, once, or a refresh token: 30 times a minute from one client address.

    Until a person decides, `details.status` is `authorization_pending`: poll again after the interval. Where polls come
    too fast it is `slow_down`, and the interval grows by 5 seconds. A code redeemed before is `used`, and its tokens
    are then revoked.

    A refresh token works once; presented again within 60 seconds it gets the same new pair, later it revokes every
    token of its approval. The same address takes the form-encoded requests of RFC 8628 and RFC 6749 and answers them
    as these say: errors with status 400, no envelope.
    """
    if _grant(body) == DEVICE_GRANT:
        device_code, verifier, client_id = _needed(body, "device_code", "code_verifier", "client_id")
        return _token(service.redeem(device_code, verifier, client_id))
    (refresh_token,) = _needed(body, "refresh_token")
    return _token(service.refresh(refresh_token, body.client_id, body.scope))


@router.post("/v1/auth/device/revoke", operation_id="revokeDeviceToken", summary="Revoke tokens")
@refuses(service.UnknownClient, service.UnsupportedToken)
async def revoke_device_token(_stranger: RevokesToken, body: TokenRevoke) -> Revocation:
    """Revokes an access token or a refresh token, and with it every token of the same approval, at once.

    Shares the limit of 30 times a minute with the tokens. A token that is unknown or revoked already is no error. The
    same address takes RFC 7009's form-encoded request.
    """
    service.revoke(body.token, body.client_id)
    return Revocation(revoked=True)


def _grant(body: TokenCreate) -> str:
    """Raises UnsupportedGrant."""
    grant = body.grant_type
    if grant is None:
        grant = REFRESH_GRANT if body.refresh_token is not None and body.device_code is None else DEVICE_GRANT
    if grant not in {DEVICE_GRANT, REFRESH_GRANT}:
        raise service.UnsupportedGrant
    return grant


def _needed(body: TokenCreate, *names: str) -> list[str]:
    """The values of fields that the grant needs. Raises InvalidPayload, which names those that are missing."""
    found = {name: getattr(body, name) for name in names}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        aliases = [TokenCreate.model_fields[name].alias or name for name in missing]
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
