"""The stand-in's secret scanning: the public keys, and a page that reports a secret as found in public.

The key pair is made when the stand-in starts, like one that GitHub has rotated.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from urllib.parse import parse_qsl

import urllib3
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.github import pages
from local.github.call import Call

TOKEN_TYPE = "assent_api_key"  # noqa: S105 (a name)
_PAGE = "/secret-scanning"
_TIMEOUT_SECONDS = 30


class SecretScanning:
    """Signs reports, and sends them to the URL of the partner."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.identifier = hashlib.sha256(public).hexdigest()
        self._public_key = public.decode()

    def list_keys(self, _: Call) -> Response:
        """Responds to GET /meta/public_keys/secret_scanning."""
        listed = [{"key_identifier": self.identifier, "key": self._public_key, "is_current": True}]
        return JSONResponse({"public_keys": listed})

    def sign(self, body: bytes) -> dict[str, str]:
        """Returns the headers that prove that the body is GitHub's."""
        signature = self._key.sign(body, ec.ECDSA(SHA256()))
        return {
            "Github-Public-Key-Identifier": self.identifier,
            "Github-Public-Key-Signature": base64.b64encode(signature).decode(),
        }

    def report(self, tokens: Iterable[str], url: str, source: str = "commit") -> urllib3.BaseHTTPResponse:
        """Sends a report that the secrets were found there."""
        found = [{"token": token, "type": TOKEN_TYPE, "url": url, "source": source} for token in tokens]
        body = json.dumps(found).encode()
        headers = {"Content-Type": "application/json", **self.sign(body)}
        return urllib3.request("POST", self.url, body=body, headers=headers, timeout=_TIMEOUT_SECONDS, retries=False)

    def routes(self) -> list[Route]:
        """Returns the routes of the page for people, which needs the URL of a partner."""

        async def form(request: Request) -> Response:
            answer = ""
            if request.method == "POST":
                fields = dict(parse_qsl((await request.body()).decode()))
                sent = await run_in_threadpool(self.report, [fields.get("token", "")], fields.get("url", ""))
                labels = [it["label"] for it in sent.json()] if sent.status == 200 else []
                answer = f"<p>The partner answered {sent.status} {html.escape(', '.join(labels))}.</p>"
            inputs = (
                "<p><label>Secret <input name=token required size=60 autocomplete=off></label></p>"
                "<p><label>Found at <input name=url type=url size=60 "
                'value="https://github.com/octocat/hello-world/blob/main/.env#L3"></label></p>'
            )
            return pages.page("Secret scanning", answer + pages.form("", inputs, "Report the secret"))

        return [Route(_PAGE, form, methods=["GET", "POST"])] if self.url else []
