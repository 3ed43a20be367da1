"""Request and response models of `device_auth`. OAuth form encoding uses the snake_case names."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp
from controlplane.platform.http.validation import described

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
REFRESH_GRANT = "refresh_token"
_URI: dict[str, Any] = {"format": "uri"}
_EXAMPLE_CODE = "assent_dc_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"
_EXAMPLE_REFRESH = "assent_rt_7m3r9t4v5w1n8q2k4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWiOyZq6B"


# Rejects control, invisible, and bidirectional characters, and spaces other than U+0020, which could hide text from
# the user who approves the device.
_PLAIN = (
    r"^[^\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]+$"
)
_PLAIN_TEXT = re.compile(_PLAIN)


def _plain_text(value: str) -> str:
    if not _PLAIN_TEXT.fullmatch(value):
        raise ValueError("Must have printable characters only")
    return value


# The maximum is longer than any issued secret.
Secret = Annotated[str, Field(min_length=1, max_length=256)]
ClientId = Annotated[str, Field(min_length=1, max_length=100, description="The client's ID.", examples=["assent-cli"])]
Scope = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description="Scope names, separated by spaces.",
        json_schema_extra={"pattern": r"^ *[a-z-]+\.(read|write)( +[a-z-]+\.(read|write))* *$"},
        examples=["organizations.read projects.read"],
    ),
]

DeviceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description="The name shown to the user who approves the device.",
        examples=["build server"],
        json_schema_extra={"pattern": _PLAIN},
    ),
    AfterValidator(_plain_text),
]


class DeviceCodeCreate(Wire):
    """A request for device authorization."""

    client_id: ClientId
    code_challenge: str = Field(
        pattern=described(r"^[A-Za-z0-9_-]{43}$", "Must be the 43 characters of a SHA-256 in Base64URL, unpadded"),
        description="BASE64URL(SHA-256(code verifier)), without padding (RFC 7636).",
        examples=["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"],
    )
    code_challenge_method: Literal["S256"] = Field(
        description="How the challenge was derived. Only `S256` is supported.", examples=["S256"]
    )
    scope: Scope | None = Field(
        None, description="The scopes to request. Defaults to the read scopes (those that end in `.read`)."
    )
    device_name: DeviceName | None = None


class DeviceCode(Wire):
    """The codes of a device authorization."""

    device_code: str = Field(description="The code that the device redeems, once.", examples=[_EXAMPLE_CODE])
    user_code: str = Field(description="The code that the user enters or compares.", examples=["BCDF-GHJK"])
    verification_uri: str = Field(
        description="The page on which the user approves or denies the device.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/device"],
    )
    verification_uri_complete: str = Field(
        json_schema_extra=_URI,
        description="The same page with the code filled in.",
        examples=["https://dashboard.assent.example/device?user_code=BCDF-GHJK"],
    )
    expires_in: int = Field(ge=0, description="Seconds until both codes expire.", examples=[900])
    interval: int = Field(ge=0, description="Seconds to wait between polls.", examples=[5])


_TEXT = {"type": "string", "minLength": 1}
_DEVICE_FIELDS = ("deviceCode", "codeVerifier", "clientId")
# JSON Schema for the fields that each grant needs. Null means that the field is omitted.
_REFRESHES: dict[str, Any] = {
    "required": ["refreshToken"],
    "properties": {
        "grantType": {"enum": [REFRESH_GRANT, None]},
        "refreshToken": _TEXT,
        "deviceCode": {"type": "null"},
    },
}
_REDEEMS: dict[str, Any] = {
    "required": [*_DEVICE_FIELDS],
    "properties": {"grantType": {"enum": [DEVICE_GRANT, None]}, **dict.fromkeys(_DEVICE_FIELDS, _TEXT)},
}


class TokenCreate(Wire):
    """A device code to redeem, with `codeVerifier` and `clientId`, or a `refreshToken` to exchange for new tokens."""

    model_config = ConfigDict(json_schema_extra={"if": _REFRESHES, "else": _REDEEMS})

    grant_type: str | None = Field(
        None,
        max_length=100,
        description="Inferred from the other fields if omitted. Required in form-encoded requests.",
        examples=[DEVICE_GRANT],
    )
    device_code: Secret | None = Field(None, description="The device code.", examples=[_EXAMPLE_CODE])
    code_verifier: str | None = Field(
        None,
        pattern=described(r"^[A-Za-z0-9._~-]{43,128}$", "Must be 43 to 128 letters, digits, or characters of -._~"),
        description="The code verifier that the code challenge was derived from (RFC 7636).",
        examples=["dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"],
    )
    client_id: ClientId | None = None
    refresh_token: Secret | None = Field(
        None, description="The most recent refresh token.", examples=[_EXAMPLE_REFRESH]
    )
    scope: Scope | None = Field(
        None, description="For a refresh token: a subset of the approved scopes. Narrows the access token."
    )


class Token(Wire):
    """An access token and the refresh token for the next one."""

    access_token: str = Field(
        description="Send it as the bearer token.", examples=["assent_at_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"]
    )
    token_type: str = Field("Bearer", description="The type of the access token.", examples=["Bearer"])
    expires_in: int = Field(ge=0, description="Seconds until the access token expires.", examples=[3600])
    refresh_token: str = Field(
        description="The token for the next refresh. Works once, within 30 days.", examples=[_EXAMPLE_REFRESH]
    )
    scope: str = Field(
        description="The scopes of the access token. The user may have approved fewer than requested.",
        examples=["organizations.read projects.read"],
    )


class TokenRevoke(Wire):
    """A token to revoke."""

    token: Secret = Field(description="An access token or a refresh token.", examples=[_EXAMPLE_REFRESH])
    token_type_hint: str | None = Field(
        None, max_length=100, description="Ignored: the type is determined from the token.", examples=["refresh_token"]
    )
    client_id: ClientId | None = None


class Revocation(Wire):
    """The result of a revocation."""

    revoked: bool = Field(description="True: the token doesn't work. Also true for an unknown token.")


class Session(Wire):
    """A session, device, or token that can act as the user."""

    id: str = Field(description="The session's ID. It isn't a secret.", examples=["ses_01kb2m3n4p5q6r7s8t"])
    kind: Literal["session", "device", "token"] = Field(
        description=(
            "`session`: a sign-in to the dashboard. `device`: approved by user code. `token`: created by the operator."
        ),
        examples=["device"],
    )
    client: str = Field(
        description="The OAuth client of a device, `dashboard` for a session, or `assent-ops` for an operator's token.",
        examples=["assent-cli"],
    )
    device_name: str | None = Field(
        description="The name that the device reported. For a session, its browser and system if they are known.",
        examples=["build server"],
    )
    ip_address: str | None = Field(
        description="The IP address of the sign-in or of the device's request. Null if unknown.",
        examples=["198.51.100.7"],
    )
    created_at: Timestamp = Field(description="The time it was approved or created.")
    last_used_at: Timestamp = Field(
        description="The last use, accurate to the hour.", examples=["2026-03-04T06:00:00.000Z"]
    )
    expires_at: Timestamp = Field(
        description="The time it expires. For a device, each refresh extends this.",
        examples=["2026-04-03T05:06:07.000Z"],
    )
    current: bool = Field(description="Whether this session made the request.")
    scopes: list[str] = Field(description="The scopes, sorted.", examples=[["organizations.read", "projects.read"]])


class RevokedSession(Wire):
    """The result of revoking a session."""

    deleted: bool = Field(description="True: its tokens no longer work.")
