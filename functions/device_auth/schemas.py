"""What `device_auth` takes and answers. The names in snake_case are those of OAuth's form-encoded dialect."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from controlplane.envelope import Wire

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
REFRESH_GRANT = "refresh_token"
_URI: dict[str, Any] = {"format": "uri"}
_TIME: dict[str, Any] = {"format": "date-time"}
_EXAMPLE_CODE = "assent_dc_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"
_EXAMPLE_REFRESH = "assent_rt_7m3r9t4v5w1n8q2k4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWiOyZq6B"


# Spaces but the plain one, controls, and what shows nothing or turns the direction: the person who decides sees all.
_PLAIN = (
    r"^[^\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    r"\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]+$"
)
_PLAIN_TEXT = re.compile(_PLAIN)


def _plain_text(value: str) -> str:
    if not _PLAIN_TEXT.fullmatch(value):
        raise ValueError("use printable characters only")
    return value


# Longer than any that is issued.
Secret = Annotated[str, Field(min_length=1, max_length=256)]
ClientId = Annotated[str, Field(min_length=1, max_length=100, description="The client's id.", examples=["assent-cli"])]
Scope = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1_000,
        description="Names of scopes, separated by spaces.",
        examples=["organizations.read projects.read"],
    ),
]

DeviceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        description="Shown to the person who decides.",
        examples=["build server"],
        json_schema_extra={"pattern": _PLAIN},
    ),
    AfterValidator(_plain_text),
]


class DeviceCodeCreate(Wire):
    """A device that asks to be let in."""

    client_id: ClientId
    code_challenge: str = Field(
        pattern=r"^[A-Za-z0-9_-]{43}$",
        description="BASE64URL(SHA-256(code verifier)), without padding (RFC 7636).",
        examples=["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"],
    )
    code_challenge_method: Literal["S256"] = Field(
        description="How the challenge was made: `S256` alone.", examples=["S256"]
    )
    scope: Scope | None = Field(
        None, description="What to ask for. The read scopes (those that end in `.read`) if omitted."
    )
    device_name: DeviceName | None = None


class DeviceCode(Wire):
    """What a device shows to a person, and what it redeems."""

    device_code: str = Field(description="What the device redeems, once.", examples=[_EXAMPLE_CODE])
    user_code: str = Field(description="What the person types or compares.", examples=["BCDF-GHJK"])
    verification_uri: str = Field(
        description="The page on which the person decides.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/device"],
    )
    verification_uri_complete: str = Field(
        json_schema_extra=_URI,
        description="The same page with the code filled in.",
        examples=["https://dashboard.assent.example/device?user_code=BCDF-GHJK"],
    )
    expires_in: int = Field(ge=0, description="Seconds until both codes expire.", examples=[900])
    interval: int = Field(ge=0, description="Seconds to wait between two polls.", examples=[5])


_TEXT = {"type": "string", "minLength": 1}
_DEVICE_FIELDS = ("deviceCode", "codeVerifier", "clientId")
# Which fields the grants need, as a document says it. Null stands for a field that is left out.
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
    """`deviceCode`, `codeVerifier` and `clientId` redeem a code; `refreshToken` gets the next pair of tokens."""

    model_config = ConfigDict(json_schema_extra={"if": _REFRESHES, "else": _REDEEMS})

    grant_type: str | None = Field(
        None,
        max_length=100,
        description="Told by the other fields where it is left out. Required in the form-encoded dialect.",
        examples=[DEVICE_GRANT],
    )
    device_code: Secret | None = Field(
        None, description="The code that the device was given.", examples=[_EXAMPLE_CODE]
    )
    code_verifier: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._~-]{43,128}$",
        description="What the code challenge was made from (RFC 7636).",
        examples=["dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"],
    )
    client_id: ClientId | None = None
    refresh_token: Secret | None = Field(
        None, description="The refresh token of the last pair.", examples=[_EXAMPLE_REFRESH]
    )
    scope: Scope | None = Field(None, description="With a refresh token: fewer scopes than were approved.")


class Token(Wire):
    """An access token, and the refresh token that follows it."""

    access_token: str = Field(
        description="Send it as the bearer token.", examples=["assent_at_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"]
    )
    token_type: Literal["Bearer"] = Field("Bearer", description="How to send it.", examples=["Bearer"])
    expires_in: int = Field(ge=0, description="Seconds that the access token still lives.", examples=[3600])
    refresh_token: str = Field(description="Works once, within 30 days.", examples=[_EXAMPLE_REFRESH])
    scope: str = Field(
        description="What the access token may do. The person may have approved less than was asked for.",
        examples=["organizations.read projects.read"],
    )


class TokenRevoke(Wire):
    """A token to give back."""

    token: Secret = Field(description="An access token or a refresh token.", examples=[_EXAMPLE_REFRESH])
    token_type_hint: str | None = Field(
        None, max_length=100, description="Without effect: a token tells its type.", examples=["refresh_token"]
    )
    client_id: ClientId | None = None


class Revocation(Wire):
    """That a token does not work."""

    revoked: bool = Field(description="True, also for a token that was unknown: it does not work.", examples=[True])


class Session(Wire):
    """Something that can act as the person."""

    id: str = Field(description="The session's id. It is not a secret.", examples=["ses_01kb2m3n4p5q6r7s8t"])
    kind: Literal["session", "device", "token"] = Field(
        description=(
            "`session`: signed in on the pages. `device`: approved by its user code. `token`: made by the operator."
        ),
        examples=["device"],
    )
    client: str = Field(
        description="The OAuth client of a device; `dashboard` for the pages, `assent-ops` for the operator.",
        examples=["assent-cli"],
    )
    device_name: str | None = Field(description="What the device calls itself.", examples=["build server"])
    ip_address: str | None = Field(
        description="The address that the sign-in or the device's request came from; null if unknown.",
        examples=["198.51.100.7"],
    )
    created_at: str | None = Field(
        description="When it was approved or created; null if that was before sessions were listed.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra=_TIME,
    )
    last_used_at: str | None = Field(
        description="The last use, accurate to the hour; null if unknown.",
        examples=["2026-03-04T06:00:00.000Z"],
        json_schema_extra=_TIME,
    )
    expires_at: str = Field(
        description="When it expires unless it is used. A device's refresh moves this.",
        examples=["2026-04-03T05:06:07.000Z"],
        json_schema_extra=_TIME,
    )
    current: bool = Field(description="Whether this request was made with it.", examples=[True])
    scopes: list[str] = Field(description="What it may do, sorted.", examples=[["organizations.read", "projects.read"]])


class RevokedSession(Wire):
    """That the session has ended."""

    deleted: bool = Field(description="True: its tokens no longer work.", examples=[True])
