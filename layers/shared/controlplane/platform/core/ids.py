"""Resource ids: a prefix, the organization's part, and a time-ordered local part. They are opaque to clients.

An id locates its item: `prj_` + 16 characters of the organization + 18 of the item give the partition key and the sort
key, so a resource is read by id with one consistent GetItem. Characters are Crockford's base 32 in lowercase.
"""

import hashlib
import re
import secrets
from typing import ClassVar, NamedTuple, Self

from controlplane.platform.core import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_PART = "[0-9a-hjkmnp-tv-z]"
_TIME_LENGTH, _RANDOM_LENGTH = 10, 8

ORGANIZATION = "org"
USER = "usr"
WEBSITE = "web"
AUDIT = "aud"
_SESSION_PREFIX = "ses"

_ROOT = {prefix: re.compile(f"{prefix}_({_PART}{{16}})") for prefix in (ORGANIZATION, USER)}
_OWNED = re.compile(f"([a-z]+)_({_PART}{{16}})({_PART}{{16,18}})")
_REQUEST = re.compile(f"[A-Za-z0-9-]{{1,64}}-({_PART}{{10}})")
# The gateway waits for a function no longer than this. A queue's worker isn't the request.
LONGEST_REQUEST_SECONDS = 30
# Of an audit, which only an owned item leads to.
AUDIT_PATTERN = f"^{AUDIT}_{_PART}{{18}}$"
_SESSION = re.compile(f"{_SESSION_PREFIX}_({_PART}{{18}})")


class Located(NamedTuple):
    """The location of an owned resource: its organization's id and its local part."""

    organization_id: str
    local: str


class OwnedId(str):
    """The id of an item that an organization owns, with the item's location. It is parsed once, where it comes in.

    Each kind of item has its own subclass, so a type checker rejects the id of another kind.
    """

    __slots__ = ("local", "organization_id")
    prefix: ClassVar[str]
    local_length: ClassVar[int] = _TIME_LENGTH + _RANDOM_LENGTH
    organization_id: str
    local: str

    @classmethod
    def of(cls, organization_id: str, local: str) -> Self:
        """Returns the id of the organization's item with that local part."""
        made = cls(f"{cls.prefix}_{organization_id[4:]}{local}")
        made.organization_id, made.local = organization_id, local
        return made

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Returns the id, or None if the text isn't an id of this kind."""
        match = _OWNED.fullmatch(text)
        if match is None or match[1] != cls.prefix or len(match[3]) != cls.local_length:
            return None
        parsed = cls(text)
        parsed.organization_id, parsed.local = f"{ORGANIZATION}_{match[2]}", match[3]
        return parsed

    @classmethod
    def parse_own(cls, organization_id: str, text: str, unknown: type[Exception]) -> Self:
        """Returns the id of an item of the organization. Raises `unknown` for any other text."""
        parsed = cls.parse(text)
        if parsed is None or parsed.organization_id != organization_id:
            raise unknown
        return parsed

    @classmethod
    def stored(cls, text: str) -> Self:
        """Returns the id that an item or a message of ours contains. Raises LookupError if it is of another kind."""
        if len(text) != 20 + cls.local_length or not text.startswith(cls.prefix):
            raise LookupError(f"a stored {cls.prefix}_ id is malformed")
        made = cls(text)
        made.organization_id, made.local = organization_of(text), text[20:]
        return made

    @property
    def location(self) -> Located:
        return Located(self.organization_id, self.local)


def organization_of(owned_id: str) -> str:
    """Returns the id of the organization that owns the item with this id, of any kind, which a message contains."""
    return f"{ORGANIZATION}_{owned_id[4:20]}"


class ProjectId(OwnedId):
    prefix = "prj"


class InstanceId(OwnedId):
    prefix = "ins"


class KeyId(OwnedId):
    prefix = "key"


class InvitationId(OwnedId):
    prefix = "inv"


class InboxItemId(OwnedId):
    prefix = "inb"


class RepositoryId(OwnedId):
    prefix = "rep"


class ScanId(OwnedId):
    prefix = "scn"


class ScanRequestId(OwnedId):
    prefix = "spr"


class RunId(OwnedId):
    """The id of a run of a website audit."""

    prefix = "run"


class EventId(OwnedId):
    """The id of an event, and of each webhook delivery of it: receivers recognize duplicates by it."""

    prefix = "evt"


class WebhookId(OwnedId):
    """The id of an endpoint that webhooks are sent to."""

    prefix = "whk"


class LogEntryId(OwnedId):
    prefix = "log"


class MemberId(OwnedId):
    prefix = "mem"
    local_length = 16

    @classmethod
    def of_user(cls, organization_id: str, user_id: str) -> Self:
        """Returns the id of the user's membership in the organization."""
        return cls.of(organization_id, user_id[4:])


def _random(length: int) -> str:
    return "".join(_ALPHABET[byte & 31] for byte in secrets.token_bytes(length))


def local_at(seconds: float) -> str:
    """Returns the lowest local part of that time, as a bound for a range of sort keys."""
    value = int(seconds * 1000)
    pairs = _PAIRS  # without a loop: every request has a time
    return (
        pairs[value >> 40 & 1023] + pairs[value >> 30 & 1023] + pairs[value >> 20 & 1023] + pairs[value >> 10 & 1023]
    ) + pairs[value & 1023]


def new_part() -> str:
    """Returns 16 random characters (80 bits), enough to be unique by themselves."""
    return _random(16)


def new_root(prefix: str) -> str:
    """Returns a new id of an item that isn't owned by an organization (organization, user): 80 random bits."""
    return f"{prefix}_{new_part()}"


def new_local() -> str:
    """Returns a new local part: 10 characters of milliseconds, then 40 random bits. Sorts by creation time."""
    return local_at(clock.now()) + _random(_RANDOM_LENGTH)


def created_at(local: str) -> float:
    """Returns the creation time, in Unix seconds, of a local part from `new_local`."""
    value = 0
    for character in local[:_TIME_LENGTH]:
        value = value * 32 + _ALPHABET.index(character)
    return value / 1000


def derived_local(*parts: str) -> str:
    """Returns a deterministic local part for an item that exists once per combination of parts."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return "".join(_ALPHABET[byte & 31] for byte in digest[: _TIME_LENGTH + _RANDOM_LENGTH])


def within(prefix: str) -> str:
    """Returns a new id of an item that is only accessed through an owned item, such as a website of a project."""
    return f"{prefix}_{new_local()}"


def session_id(local: str) -> str:
    """Returns the id of one of a person's credentials. It reveals nothing about the person or the secret."""
    return f"{_SESSION_PREFIX}_{local}"


def local_of_session(text: str) -> str | None:
    """Returns the local part of a session id, or None if the text is another. It doesn't contain the person's id."""
    match = _SESSION.fullmatch(text)
    return match[1] if match else None


def is_root(prefix: str, text: str) -> bool:
    """Returns whether the text is a well-formed id with that prefix. Check this before using the text in a key."""
    return _ROOT[prefix].fullmatch(text) is not None


def request_id(gateway_id: str) -> str:
    """Returns the id of a request that begins now: the gateway's, which joins our logs with its own, and the time.

    The time locates a request's records without an index: in the organization's partition, within the seconds that a
    request can take. Clients treat ids as opaque.
    """
    return f"{gateway_id}-{local_at(clock.now())}"


def request_began_at(text: str) -> float | None:
    """Returns when the request began, in Unix seconds. None if the text isn't an id of ours."""
    match = _REQUEST.fullmatch(text)
    return created_at(match[1]) if match else None
