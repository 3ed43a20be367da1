"""The stand-in's secret scanning: the public keys, and a page that reports a secret as found in public.

The key pair is made when the stand-in starts, like one that GitHub has rotated.
"""

import base64
import hashlib
import json
from typing import Annotated, Any

import urllib3
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi import APIRouter, Depends
from fastapi.requests import Request
from fastapi.responses import HTMLResponse

from local import pages
from local.github.host import API, HostRoute
from local.github.records import Denied

TOKEN_TYPE = "assent_api_key"  # noqa: S105 (a name)
_PAGE = "/secret-scanning"
_TIMEOUT_SECONDS = 30

keys = APIRouter(prefix=API, route_class=HostRoute)
router = APIRouter()


class SecretScanning:
    """Signs reports, and sends them to the URL of the partner."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.identifier = hashlib.sha256(public).hexdigest()
        self.public_key = public.decode()

    def sign(self, body: bytes) -> dict[str, str]:
        """Returns the headers that prove that the body is GitHub's."""
        signature = self._key.sign(body, ec.ECDSA(SHA256()))
        return {
            "Github-Public-Key-Identifier": self.identifier,
            "Github-Public-Key-Signature": base64.b64encode(signature).decode(),
        }

    def report(self, token: str, url: str) -> urllib3.BaseHTTPResponse:
        """Sends a report that the secret was found there. Raises Denied if there is no partner."""
        if not self.url:
            raise Denied
        body = json.dumps([{"token": token, "type": TOKEN_TYPE, "url": url, "source": "commit"}]).encode()
        headers = {"Content-Type": "application/json", **self.sign(body)}
        return urllib3.request("POST", self.url, body=body, headers=headers, timeout=_TIMEOUT_SECONDS, retries=False)


@keys.get("/meta/public_keys/secret_scanning")
def list_keys(request: Request) -> dict[str, Any]:
    scanning: SecretScanning = request.app.state.scanning
    listed = {"key_identifier": scanning.identifier, "key": scanning.public_key, "is_current": True}
    return {"public_keys": [listed]}


@router.get(_PAGE)
def show(request: Request) -> HTMLResponse:
    return pages.page(request, "github/scanning.html", "Secret scanning")


@router.post(_PAGE)
def report(request: Request, fields: Annotated[dict[str, str], Depends(pages.form)]) -> HTMLResponse:
    sent = request.app.state.scanning.report(fields.get("token", ""), fields.get("url", ""))
    labels = [it["label"] for it in sent.json()] if sent.status == 200 else []
    answer = f"The partner answered {sent.status} {', '.join(labels)}."
    return pages.page(request, "github/scanning.html", "Secret scanning", answer=answer)
