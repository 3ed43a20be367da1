"""Signing in a device for a person: OAuth's device grant (RFC 8628) with PKCE."""

from collections.abc import Sequence
from dataclasses import replace

from openassent._async._pages import AsyncResource
from openassent._calls import change, get, given
from openassent._device_login import DeviceLogin, challenge_of, create_verifier
from openassent._retries import monotonic, sleep_async
from openassent._settings import is_web_address
from openassent.errors import (
    AuthorizationPending,
    ConnectionFailed,
    DeviceCodeExpired,
    MalformedResponse,
    ServerError,
    SlowDown,
    WaitTimedOut,
)
from openassent.models import AuthorizationServerMetadata, DeviceCode, Revocation, Token

CLIENT_ID = "assent-cli"
_CODE_PATH = "/v1/auth/device/code"
_TOKEN_PATH = "/v1/auth/device/token"  # nosec B105  # noqa: S105
_REVOKE_PATH = "/v1/auth/device/revoke"
_SLOWER_SECONDS = 5
# For a minute, a refresh token that was used returns the same tokens again. After that, it revokes all of them.
_REFRESH_WITHIN_SECONDS = 20.0


class AsyncDevice(AsyncResource):
    """The login of a device, such as a command line. Needs no credential.

    metadata: an argument of each operation: its endpoints are used in place of the service's usual paths.
    """

    async def metadata(self) -> AuthorizationServerMetadata:
        """Returns the authorization server metadata (RFC 8414)."""
        call = get("/.well-known/oauth-authorization-server", public=True)
        return await self._core.parsed(call, AuthorizationServerMetadata)

    async def start(
        self,
        *,
        scopes: Sequence[str] | None = None,
        device_name: str | None = None,
        client_id: str = CLIENT_ID,
        metadata: AuthorizationServerMetadata | None = None,
    ) -> DeviceLogin:
        """Starts a login. Show its code to the person, then call `poll`.

        scopes: what the device asks for, by default everything that ends in `.read`.
        device_name: how the person recognizes the device, such as the name of the machine.
        """
        verifier = create_verifier()
        body = given(
            clientId=client_id,
            codeChallenge=challenge_of(verifier),
            codeChallengeMethod="S256",
            scope=None if scopes is None else " ".join(scopes),
            deviceName=device_name,
        )
        url = _CODE_PATH if metadata is None else _endpoint(metadata.device_authorization_endpoint)
        code = await self._core.result(replace(change("POST", url, body), public=True), DeviceCode)
        # Programs open these pages.
        _endpoint(code.verification_uri)
        _endpoint(code.verification_uri_complete)
        return DeviceLogin(code, client_id, verifier)

    async def poll(
        self, login: DeviceLogin, *, timeout: float | None = None, metadata: AuthorizationServerMetadata | None = None
    ) -> Token:
        """Waits until the person has approved the login, and returns the tokens.

        timeout: in seconds, by default until the code expires.

        Raises AccessDenied if the person denies it, DeviceCodeExpired if the code expires, and WaitTimedOut.
        """
        began, interval = monotonic(), float(login.code.interval)
        while True:
            elapsed = monotonic() - began
            if timeout is not None and elapsed + interval > timeout:
                raise WaitTimedOut("The login hasn't been approved in time.")
            if elapsed > login.code.expires_in:
                raise DeviceCodeExpired("The login wasn't approved before its code expired. Start again.", status=401)
            await sleep_async(interval)
            try:
                return await self.redeem(login, metadata=metadata)
            except SlowDown:
                interval += _SLOWER_SECONDS
            except AuthorizationPending:
                pass
            except (ConnectionFailed, ServerError):  # RFC 8628, section 3.5: poll less often
                interval *= 2

    async def redeem(self, login: DeviceLogin, *, metadata: AuthorizationServerMetadata | None = None) -> Token:
        """Asks once for the tokens of an approved login.

        Raises AuthorizationPending until the person decides, SlowDown if it is called more often than every
        `login.code.interval` seconds, AccessDenied, and DeviceCodeExpired. A code works once: Conflict means that it
        was redeemed before, and its tokens are revoked.
        """
        body = {
            "deviceCode": login.code.device_code,
            "codeVerifier": login.code_verifier,
            "clientId": login.client_id,
        }
        call = change("POST", _token_url(metadata), body)
        return await self._core.result(replace(call, public=True), Token)

    async def refresh(
        self,
        refresh_token: str,
        *,
        scopes: Sequence[str] | None = None,
        metadata: AuthorizationServerMetadata | None = None,
    ) -> Token:
        """Exchanges a refresh token for new tokens. It works once: store the new one before you use its access token.

        scopes: narrows the access token.

        Raises Unauthorized if the token is invalid: log in again. After ConnectionFailed, the token may have been used;
        for a minute, it can be exchanged again.
        """
        body = given(refreshToken=refresh_token, scope=None if scopes is None else " ".join(scopes))
        call = change("POST", _token_url(metadata), body, repeatable=True)
        call = replace(call, public=True, repeat_within_seconds=_REFRESH_WITHIN_SECONDS)
        return await self._core.result(call, Token)

    async def revoke(self, token: str, *, metadata: AuthorizationServerMetadata | None = None) -> Revocation:
        """Revokes an access or refresh token, and every other token of the same login. Unknown tokens are no error."""
        url = _REVOKE_PATH if metadata is None else _endpoint(metadata.revocation_endpoint)
        call = change("POST", url, {"token": token}, repeatable=True)
        return await self._core.result(replace(call, public=True), Revocation)


def _token_url(metadata: AuthorizationServerMetadata | None) -> str:
    return _TOKEN_PATH if metadata is None else _endpoint(metadata.token_endpoint)


def _endpoint(url: str) -> str:
    if not is_web_address(url):
        raise MalformedResponse("The service's address for signing in is malformed.")
    return url
