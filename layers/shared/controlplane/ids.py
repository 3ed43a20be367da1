"""Resource ids: a prefix, the organization's part and a time-ordered part, opaque to clients.

An id locates its item: `prj_` + 16 characters of the organization + 18 of the item gives the partition and the sort
key, so a resource is read by id with one consistent GetItem. Characters are Crockford's base 32 in lower case.
"""

import hashlib
import re
import secrets
from typing import NamedTuple

from controlplane import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PART = "[0-9a-hjkmnp-tv-z]"
_TIME_LENGTH, _RANDOM_LENGTH = 10, 8

ORGANIZATION = "org"
USER = "usr"
PROJECT = "prj"
INSTANCE = "ins"
WEBSITE = "web"
KEY = "key"
MEMBER = "mem"
INVITATION = "inv"
AUDIT = "aud"
INBOX_ITEM = "inb"
REPOSITORY = "rep"
SCAN = "scn"
SCAN_REQUEST = "spr"
SESSION = "ses"

_ROOT = {prefix: re.compile(f"{prefix}_({_PART}{{16}})") for prefix in (ORGANIZATION, USER)}
_OWNED = {
    PROJECT: re.compile(f"prj_({_PART}{{16}})({_PART}{{18}})"),
    INSTANCE: re.compile(f"ins_({_PART}{{16}})({_PART}{{18}})"),
    KEY: re.compile(f"key_({_PART}{{16}})({_PART}{{18}})"),
    INVITATION: re.compile(f"inv_({_PART}{{16}})({_PART}{{18}})"),
    INBOX_ITEM: re.compile(f"inb_({_PART}{{16}})({_PART}{{18}})"),
    REPOSITORY: re.compile(f"rep_({_PART}{{16}})({_PART}{{18}})"),
    SCAN: re.compile(f"scn_({_PART}{{16}})({_PART}{{18}})"),
    SCAN_REQUEST: re.compile(f"spr_({_PART}{{16}})({_PART}{{18}})"),
    MEMBER: re.compile(f"mem_({_PART}{{16}})({_PART}{{16}})"),
}
_SESSION = re.compile(f"{SESSION}_({_PART}{{18}})")


class Located(NamedTuple):
    """Where an owned resource lives: its organization's id and its own part."""

    organization_id: str
    local: str


def _random(length: int) -> str:
    return "".join(_ALPHABET[byte & 31] for byte in secrets.token_bytes(length))


def _time_part(seconds: float) -> str:
    value = int(seconds * 1000)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(5 * (_TIME_LENGTH - 1), -1, -5))


def new_part() -> str:
    """80 random bits in 16 characters: enough to stand alone."""
    return _random(16)


def new_root(prefix: str) -> str:
    """An id that stands alone (organization, user): 80 random bits."""
    return f"{prefix}_{new_part()}"


def new_local() -> str:
    """The item's own part: 10 characters of milliseconds, then 40 random bits. Sorts by time of creation."""
    return _time_part(clock.now()) + _random(_RANDOM_LENGTH)


def created_at(local: str) -> float:
    """Returns the moment of an own part that `new_local` made, in Unix seconds."""
    value = 0
    for character in local[:_TIME_LENGTH]:
        value = value * 32 + _ALPHABET.index(character)
    return value / 1000


def derived_local(*parts: str) -> str:
    """The own part of an item that exists once for these parts: whoever makes it, and however often, makes the same."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return "".join(_ALPHABET[byte & 31] for byte in digest[: _TIME_LENGTH + _RANDOM_LENGTH])


def oldest_local(*parts: str) -> str:
    """Like `derived_local`, but sorts before every own part that `new_local` returns: 70 bits of the parts' hash."""
    return "0000" + derived_local(*parts)[:14]


def local_at(seconds: float) -> str:
    """The lowest own part of that moment: a bound for a range of sort keys."""
    return _time_part(seconds)


def owned(prefix: str, organization_id: str, local: str) -> str:
    """The id of an item of an organization."""
    return f"{prefix}_{organization_id[4:]}{local}"


def within(prefix: str) -> str:
    """The id of something that is only ever reached through an owned item, as a website through its project."""
    return f"{prefix}_{new_local()}"


def member_id(organization_id: str, user_id: str) -> str:
    return f"{MEMBER}_{organization_id[4:]}{user_id[4:]}"


def session_id(local: str) -> str:
    """The id of one of a person's credentials. It says nothing about the person or the secret."""
    return f"{SESSION}_{local}"


def local_of_session(text: str) -> str | None:
    """The own part of a session id, or None if the text isn't one. The caller supplies the person."""
    match = _SESSION.fullmatch(text)
    return match[1] if match else None


def is_root(prefix: str, text: str) -> bool:
    """Whether the text has the form of such an id. Nothing else may become part of a key."""
    return _ROOT[prefix].fullmatch(text) is not None


def locate(prefix: str, text: str) -> Located | None:
    """Where the id points, or None where it is no id of that kind."""
    match = _OWNED[prefix].fullmatch(text)
    return Located(f"{ORGANIZATION}_{match[1]}", match[2]) if match else None
