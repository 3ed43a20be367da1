"""A response as tests see it."""

import json
from dataclasses import dataclass, field
from typing import Any

from local.gateway import REMAPPED_PREFIX, Response

REQUEST_ID = "the-id-of-the-request"
_GUIDANCE = ("docsUrl", "hint")


def _without_guidance(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name not in _GUIDANCE}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: Any
    text: str
    cookies: list[str] = field(default_factory=list)

    @property
    def data(self) -> Any:
        assert self.body["success"] is True, self.text
        return self.body["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The error without what every error has: `docsUrl` and `hint`."""
        assert self.body["success"] is False, self.text
        error = self.body["error"]
        details = error["details"]
        own = [_without_guidance(it) for it in details] if isinstance(details, list) else _without_guidance(details)
        return {**{name: error[name] for name in ("code", "message")}, **({"details": own} if own else {})}

    @property
    def guidance(self) -> dict[str, Any]:
        """The error's `docsUrl` and `hint`."""
        details = self.body["error"]["details"]
        holder = details[0] if isinstance(details, list) else details
        return {name: holder[name] for name in _GUIDANCE if name in holder}

    @property
    def code(self) -> str:
        return self.error["code"]

    @property
    def challenge(self) -> str | None:
        """The value of WWW-Authenticate, under that name or the one that API Gateway gives it."""
        return self.headers.get("www-authenticate") or self.headers.get(f"{REMAPPED_PREFIX}www-authenticate")

    @classmethod
    def read(cls, status: int, headers: dict[str, str], text: str, cookies: list[str] | None = None) -> "Reply":
        """Returns the response with its JSON parsed, if it has any. Names of headers are in lowercase.

        Error pages show the id of their request, which is replaced by `REQUEST_ID`, so that they can be compared.
        """
        if "x-request-id" in headers:
            text = text.replace(headers["x-request-id"], REQUEST_ID)
        is_json = headers.get("content-type", "").startswith("application/json")
        return cls(status, headers, json.loads(text) if is_json and text else None, text, cookies or [])

    @classmethod
    def of_response(cls, response: Response) -> "Reply":
        """Returns a response of the gateway."""
        cookies = [value for name, value in response.headers if name == "set-cookie"]
        headers = {name: value for name, value in response.headers if name != "set-cookie"}
        return cls.read(response.status, headers, response.body.decode(), cookies)
