"""Authenticates requests with the tokens of a profile, and renews them when they expire."""

import time
from collections.abc import Generator

import httpx
from openassent.models import Token

from openassent import Device, Unauthorized
from openassent_cli import credentials, profiles
from openassent_cli.credentials import Tokens
from openassent_cli.problems import NotSignedIn

# A token this close to its end would expire on the way.
_MARGIN_SECONDS = 30.0


class ProfileAuth(httpx.Auth):
    """Sends the profile's access token, and renews it under a lock.

    A refresh token works once. Commands that run at the same time therefore wait for each other, and use the tokens
    that the first of them has stored.
    """

    def __init__(self, profile: str, device: Device) -> None:
        self._profile = profile
        self._device = device
        self._store = credentials.store()

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises NotSignedIn. Sends the request again if the service refuses a token before its end."""
        tokens = self._load()
        if tokens.expires_at - _MARGIN_SECONDS < time.time():
            tokens = self._renew(tokens)
        response = yield self._signed(request, tokens)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            yield self._signed(request, self._renew(tokens))

    def _signed(self, request: httpx.Request, tokens: Tokens) -> httpx.Request:
        request.headers["Authorization"] = f"Bearer {tokens.access_token}"
        return request

    def _load(self) -> Tokens:
        tokens = self._store.load(self._profile)
        if tokens is None:
            raise NotSignedIn
        return tokens

    def _renew(self, stale: Tokens) -> Tokens:
        with profiles.locked(f"tokens-{self._profile}"):
            stored = self._load()
            if stored.access_token != stale.access_token:
                return stored
            try:
                token = self._device.refresh(stored.refresh_token)
            except Unauthorized:
                self._store.delete(self._profile)
                raise NotSignedIn("Your sign-in has expired, or it was revoked.") from None
            renewed = tokens_of(token)
            self._store.save(self._profile, renewed)
            return renewed


def tokens_of(token: Token) -> Tokens:
    """Returns the part of the service's answer that is stored."""
    return Tokens(token.access_token, token.refresh_token, time.time() + token.expires_in, token.scope)


def revoke(profile: str, device: Device) -> bool:
    """Revokes and forgets the profile's tokens. Returns whether there were any. Raises AssentError."""
    store = credentials.store()
    with profiles.locked(f"tokens-{profile}"):
        tokens = store.load(profile)
        if tokens is None:
            return False
        store.delete(profile)
        device.revoke(tokens.refresh_token)
        return True
