"""The OpenID Connect client for sign-in: authorization code flow with PKCE, as a public client.

A token is accepted only if its signature, issuer, audience, and nonce are valid. The provider's metadata and keys are
cached for an hour. A token that can't be verified with the cached keys causes one refetch.
"""

import io
import re
import socket
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlencode, urlsplit

import requests
import urllib3
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from requests.adapters import HTTPAdapter

from controlplane.access.sign_in import Claims
from controlplane.platform.core import clock, deadline
from controlplane.platform.core.naming import is_email
from dashboard.access.sign_in import ProviderUnavailable, SignInRejected

_SCOPE = "openid email profile"
# The value of `prompt` for a new account, and how the host names of Cognito's issuers begin.
_CREATE, _COGNITO = "create", "cognito-idp."
# Asymmetric algorithms only: no HMAC and not "none".
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KEPT_SECONDS = 3600
_TIMEOUT_SECONDS = (3, 5)
# Allows for clock skew.
_LEEWAY_SECONDS = 60
_NAME_LENGTH, _URL_LENGTH, _SUBJECT_LENGTH = 100, 2048, 255
_INVISIBLE = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass
class _Known:
    """The cached metadata and keys of the provider, and the time they were fetched."""

    metadata: dict[str, Any] = field(default_factory=dict)
    keys: KeySet | None = None
    fetched_at: float = float("-inf")


class Provider:
    """An issuer. `metadata_url` is needed only if the metadata isn't at the default location below the issuer's URL."""

    def __init__(self, issuer: str, metadata_url: str | None = None) -> None:
        self.issuer = issuer
        self._metadata_url = metadata_url or f"{issuer}/.well-known/openid-configuration"
        self._known = _Known()

    def is_named(self, issuer: str) -> bool:
        """Returns True if this is the provider's issuer. Ignores a trailing slash, which the setting doesn't have."""
        return issuer.removesuffix("/") == self.issuer

    def authorization_url(
        self, client_id: str, redirect_uri: str, state: str, nonce: str, verifier: str, *, creates_account: bool = False
    ) -> str:
        """Returns the URL at which the user signs in. Raises ProviderUnavailable.

        creates_account: leads to the form for a new account, if the provider says that it has one (Initiating User
        Registration via OpenID Connect 1.0) or is Cognito, which has it at an address of its own.
        """
        metadata = self._metadata()
        endpoint, more = str(metadata["authorization_endpoint"]), {}
        if creates_account and _CREATE in str(metadata.get("prompt_values_supported")):
            more = {"prompt": _CREATE}
        elif creates_account and urlsplit(self.issuer).netloc.startswith(_COGNITO):
            endpoint = endpoint.removesuffix("/oauth2/authorize") + "/signup"
        with self._session(client_id, redirect_uri) as session:
            url, _ = session.create_authorization_url(
                endpoint, state=state, code_verifier=verifier, nonce=nonce, **more
            )
        return str(url)

    def end_session_url(self, client_id: str, return_to: str) -> str | None:
        """Returns the URL that ends the provider's own session, or None if there is no such endpoint.

        Has both the OpenID Connect parameters and those of Cognito, which differ. Raises ProviderUnavailable.
        """
        endpoint = self._metadata().get("end_session_endpoint")
        if not endpoint:
            return None
        query = {"client_id": client_id, "post_logout_redirect_uri": return_to, "logout_uri": return_to}
        return f"{endpoint}?{urlencode(query)}"

    def redeem(self, client_id: str, redirect_uri: str, code: str, verifier: str, nonce: str) -> Claims:
        """Redeems the code and returns the claims about the user. Raises ProviderUnavailable, SignInRejected."""
        endpoint = self._metadata()["token_endpoint"]
        try:
            with self._session(client_id, redirect_uri) as session, deadline.spending():
                response = session.fetch_token(
                    endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    allow_redirects=False,
                )
        except OAuthError as failure:
            raise SignInRejected(reason=f"token endpoint: {failure.error}") from failure
        # Not JSON. Before RequestException, because requests' JSON error is a subclass of both.
        except ValueError as failure:
            raise SignInRejected(reason="token endpoint: unreadable answer") from failure
        except requests.RequestException as failure:
            raise ProviderUnavailable(reason=type(failure).__name__) from failure
        claims = self._verify(response.get("id_token"), response.get("access_token"), client_id, nonce)
        return _checked(self.issuer, claims)

    def _session(self, client_id: str, redirect_uri: str) -> OAuth2Session:
        session = OAuth2Session(
            client_id,
            scope=_SCOPE,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            token_endpoint_auth_method="none",  # nosec B106  # noqa: S106 - a public client: PKCE binds the code
        )
        _restrict(session)
        return session

    def _verify(self, id_token: Any, access_token: Any, client_id: str, nonce: str) -> dict[str, Any]:
        """Returns the claims of the token if this issuer signed it for us in this sign-in. Raises SignInRejected."""
        if not isinstance(id_token, str):
            raise SignInRejected(reason="no id_token")
        try:
            token = self._decode(id_token)
            claims = CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": self._metadata()["issuer"]},
                    "aud": {"essential": True, "value": client_id},
                    "sub": {"essential": True},
                },
                {"nonce": nonce, "client_id": client_id, "access_token": access_token},
            )
            claims.validate(now=int(clock.now()), leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError) as failure:
            raise SignInRejected(reason=f"id_token: {type(failure).__name__}") from failure
        return dict(claims)

    def _decode(self, id_token: str) -> jwt.Token:
        try:
            return jwt.decode(id_token, self._keys(), algorithms=_ALGORITHMS)
        except (JoseError, ValueError):
            # The keys may have been rotated since they were fetched.
            self._known = _Known()
            return jwt.decode(id_token, self._keys(), algorithms=_ALGORITHMS)

    def _metadata(self) -> dict[str, Any]:
        if self._known.fetched_at + _KEPT_SECONDS <= clock.now():
            metadata = _fetch(self._metadata_url)
            endpoints = [metadata.get(f"{name}_endpoint") for name in ("authorization", "token")]
            # OpenID Connect Discovery 1.0 section 4.3.
            if not self.is_named(str(metadata.get("issuer"))) or not all(isinstance(url, str) for url in endpoints):
                raise ProviderUnavailable(reason="the metadata is not the issuer's")
            self._known = _Known(metadata, None, clock.now())
        return self._known.metadata

    def _keys(self) -> KeySet:
        metadata = self._metadata()
        if self._known.keys is None:
            described = _fetch(str(metadata.get("jwks_uri")))
            try:
                self._known.keys = KeySet.import_key_set(described)  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError) as failure:
                raise ProviderUnavailable(reason="the keys cannot be read") from failure
        return self._known.keys


def _fetch(url: str) -> dict[str, Any]:
    """Fetches a JSON object. Raises ProviderUnavailable."""
    try:
        with requests.Session() as session, deadline.spending():
            _restrict(session)
            response = session.get(url, headers={"Accept": "application/json"})
        content = response.json() if response.ok else None
    except requests.RequestException as failure:
        raise ProviderUnavailable(reason=type(failure).__name__) from failure
    if not isinstance(content, dict):
        raise ProviderUnavailable(reason=f"status {response.status_code}")
    return content


class _BoundedStream(io.RawIOBase):
    """The bytes of a response. The deadline caps the timeout of each read.

    A socket's timeout restarts with each byte, so a server that trickles its response could block a request forever.
    """

    def __init__(self, stream: io.RawIOBase, sock: socket.socket) -> None:
        self._stream, self._sock = stream, sock
        self._timeout = sock.gettimeout()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(deadline.bounded(self._timeout))
        if deadline.is_over():
            raise TimeoutError("timed out")
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _BoundedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_BoundedStream(self.fp.detach(), sock))


class _Connection(urllib3.connection.HTTPConnection):
    response_class = _BoundedResponse


class _TlsConnection(urllib3.connection.HTTPSConnection):
    response_class = _BoundedResponse


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _BoundedAdapter(HTTPAdapter):
    """Enforces the request's deadline, even if a response trickles in slowly."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def send(self, *args: Any, **options: Any) -> requests.Response:
        options["timeout"] = tuple(map(deadline.bounded, _TIMEOUT_SECONDS))
        return super().send(*args, **options)


def _restrict(session: requests.Session) -> None:
    """Ignores proxies and credentials from the environment, and enforces the request's deadline."""
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, _BoundedAdapter())


def _checked(issuer: str, claims: dict[str, Any]) -> Claims:
    """Returns the claims without fields that an account can't store. Raises SignInRejected."""
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_LENGTH:
        raise SignInRejected(reason="id_token: sub")
    email, image = claims.get("email"), claims.get("picture")
    if not isinstance(email, str) or not is_email(email):
        email = None
    if not isinstance(image, str) or len(image) > _URL_LENGTH or not image.startswith("https://"):
        image = None
    return Claims(
        issuer=issuer,
        subject=subject,
        email=email,
        email_verified=_is_true(claims.get("email_verified")),
        name=_name(claims),
        image=image,
    )


def _is_true(claim: Any) -> bool:
    # Cognito passes this claim as a string for some providers.
    return claim is True or claim == "true"


def _name(claims: dict[str, Any]) -> str | None:
    whole = claims.get("name")
    parts = [claims.get("given_name"), claims.get("family_name")]
    text = whole if isinstance(whole, str) else " ".join(part for part in parts if isinstance(part, str))
    return " ".join(_INVISIBLE.sub(" ", text).split())[:_NAME_LENGTH].strip() or None
