"""A local OpenID Connect issuer, as strict as a real one where the pages depend on it, with failures on demand.

In production the issuer is an external service. Only the issuer is simulated: HTTP and signatures are real.
"""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from controlplane.platform.core import clock


def _key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"})


@dataclass
class Issuer:
    """`changes` override claims of the next tokens (None omits one), `metadata` overrides the metadata."""

    client_id: str = "pages"
    redirect_uri: str = "https://dashboard.assent.test/sign-in/callback"
    changes: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=_key)
    signs_with: RSAKey | None = None
    header: dict[str, Any] = field(default_factory=dict)
    forge: Callable[[dict[str, Any]], str] | None = None
    answer: tuple[int, bytes] | None = None
    fetched: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.fetched.append(self.path)
                if self.path == "/.well-known/openid-configuration":
                    self._send(200, json.dumps(issuer._describe()).encode())
                elif self.path == "/keys":
                    self._send(200, json.dumps(KeySet([issuer.key]).as_dict(private=False)).encode())
                else:
                    self._send(404, b"{}")

            def do_POST(self) -> None:
                issuer.fetched.append(self.path)
                form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
                self._send(*(issuer.answer or issuer._token({name: values[0] for name, values in form.items()})))

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, url: str, subject: str = "subject-1") -> dict[str, str]:
        """Signs the user in at that address. Returns the parameters of the redirect back."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.url}/authorize?")
        assert query["response_type"] == "code"
        assert query["client_id"] == self.client_id
        assert query["redirect_uri"] == self.redirect_uri
        assert query["scope"] == "openid email profile"
        assert query["code_challenge_method"] == "S256"
        assert len(query["state"]) >= 32
        assert len(query["nonce"]) >= 32
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**query, "subject": subject}
        return {"code": code, "state": query["state"]}

    def _describe(self) -> dict[str, Any]:
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "end_session_endpoint": f"{self.url}/logout",
            **self.metadata,
        }
        return {name: value for name, value in document.items() if value is not None}

    def _token(self, form: dict[str, str]) -> tuple[int, bytes]:
        asked = self._codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "")
        proof = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("client_id") != self.client_id
            or form.get("redirect_uri") != self.redirect_uri
            or not 43 <= len(verifier) <= 128
            or proof != asked["code_challenge"]
        ):
            return 400, b'{"error": "invalid_grant"}'
        now = int(clock.now())
        claims = {
            "iss": self.url,
            "sub": asked["subject"],
            "aud": self.client_id,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "email": "ada@example.com",
            "email_verified": True,
            "name": "Ada Lovelace",
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        key = self.signs_with or self.key
        header = {"alg": "RS256", "kid": key.kid, **self.header}
        answer = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 300}
        token = self.forge(claims) if self.forge else jwt.encode(header, claims, key)
        return 200, json.dumps({**answer, "id_token": token}).encode()


def callback(answer: dict[str, str]) -> str:
    """Returns the path of the redirect back to the pages."""
    return f"/sign-in/callback?{urlencode(answer)}"
