"""Form-encoded OAuth requests and their responses and errors (RFC 6749, RFC 8628, RFC 7009).

The operations are the same as with JSON; only names and shapes differ. These responses have no envelope.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from controlplane.platform.core.errors import ApiError, InvalidPayload, summarize
from controlplane.platform.http.callers import Caller
from controlplane.platform.http.reader import MAX_FORM_BYTES, parse_pairs

MEDIA_TYPE = "application/x-www-form-urlencoded"
_MAX_FIELDS = 64
_CAPITAL = re.compile(r"[A-Z]")
_FIELD = re.compile(r"[a-z_]+")
# Characters not allowed in an error_description (RFC 6749 section 5.2).
_UNSPEAKABLE = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")
_HEADERS = {"content-type": "application/json", "cache-control": "no-store", "pragma": "no-cache"}
# Errors with these statuses keep them. All others get 400, as in OAuth.
_KEPT = {413, 429, 500, 503}
_ERRORS = {"RATE_LIMITED": "slow_down", "INTERNAL_ERROR": "server_error", "SERVICE_UNAVAILABLE": "server_error"}


@dataclass(frozen=True, slots=True)
class OAuthForm:
    """The form encoding of an operation. `required` are parameters that OAuth requires but JSON doesn't."""

    required: tuple[str, ...] = ()

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the parameters, without empty and unknown ones (RFC 6749 section 3.2). Raises InvalidPayload."""
        try:
            pairs = parse_pairs(body, _MAX_FIELDS)
        except ValueError:
            message = (
                f"The body is not form-encoded UTF-8 of at most {MAX_FORM_BYTES:,} bytes and {_MAX_FIELDS} fields."
            )
            raise InvalidPayload.at([], message, "form_invalid") from None
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if "\0" in value:
                raise InvalidPayload.at([name], "This parameter contains the character NUL. Remove it.", "form_invalid")
            if not value or not _FIELD.fullmatch(name):
                continue
            if name in fields:
                raise InvalidPayload.at([name], "This parameter is given more than once. Send it once.", "repeated")
            fields[name] = value
        for name in self.required:
            if name not in fields:
                raise InvalidPayload.at([name], "This parameter is missing.", "missing")
        return fields

    def success(self, content: BaseModel) -> Response:
        """Returns 200 with the fields in snake_case, without an envelope."""
        fields = content.model_dump(by_alias=False)
        return Response(json.dumps(fields), 200, _HEADERS)

    def failure(self, error: ApiError, caller: Caller) -> Response:  # noqa: ARG002
        """Returns `{error, error_description}` with status 400, or with the error's own status if it is in `_KEPT`."""
        status = error.status if error.status in _KEPT else 400
        fields = {"error": _error(error), "error_description": _describe(error)}
        headers = {name: value for name, value in error.headers.items() if name != "WWW-Authenticate"}
        return Response(json.dumps(fields), status, {**_HEADERS, **headers})


def _error(error: ApiError) -> str:
    """Returns the OAuth error code: the error's `oauth_error`, or else the one that matches its API code."""
    return getattr(error, "oauth_error", None) or _ERRORS.get(error.code, "invalid_request")


def _describe(error: ApiError) -> str:
    text = summarize(error.details, _name) if isinstance(error, InvalidPayload) else error.public
    return _UNSPEAKABLE.sub("'", text)


def _name(path: list[str]) -> str:
    """Returns the parameter's name in snake_case."""
    return _CAPITAL.sub(lambda letter: "_" + letter[0].lower(), ".".join(path))
