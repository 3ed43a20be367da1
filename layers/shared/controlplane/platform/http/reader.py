"""Reads a request: the client's address, the body up to its size limit, strict JSON or a dialect, and the query."""

import codecs
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request, empty_receive
from starlette.types import Receive, Scope

from controlplane.platform.core.errors import (
    InvalidPayload,
    PayloadTooLarge,
    Problems,
    UnsupportedMediaType,
    did_you_mean,
    problem,
)
from controlplane.platform.http.client_address import client_address

MAX_BODY_BYTES = 1_048_576
# Headers with one value. A gateway or proxy joins repeated ones with commas, so a comma is a second value too.
SINGLE_HEADERS = {b"content-type": "Content-Type", b"idempotency-key": "Idempotency-Key"}
_MAX_QUERY_PARAMETERS = 64
# The query parameter of operations that change something. Others reject it, so that it never goes unnoticed.
DRY_RUN = "dryRun"
# Decoding percent escapes takes some thirty times as long as parsing JSON of the same length. Every field that an
# operation accepts is shorter than 5 KB.
MAX_FORM_BYTES = 65_536
MAX_DEPTH = 64
_MAX_DIGITS = 1_000
# Of a key in a message.
_SHOWN_LENGTH = 50
# No operation needs a hundredth of either. Parsing an empty object takes as long as 40 characters of text.
MAX_KEYS = 10_000
MAX_OPENINGS = 50_000


class RequestReader(Request):
    """A request whose body is read and parsed here. FastAPI gets the results from `body`, `json`, and `headers`."""

    def __init__(self, scope: Scope, receive: Receive = empty_receive) -> None:
        super().__init__(scope, receive)
        # Empty until `read_body`.
        self.raw_body = b""
        # None until `parse_body`, and without a body.
        self.content: Any = None
        self.is_body_readable = True
        # The problems of the headers, the body's format, and the query.
        self.problems: Problems = []
        self._translated_headers: Headers | None = None

    @property
    def address(self) -> str:
        """The address of the client that sent the request."""
        return client_address(self.client.host if self.client else "", super().headers.getlist)

    @property
    def authorization(self) -> str | None:
        """The Authorization header. Repeated ones are joined, as gateways do, which makes an invalid credential."""
        return ", ".join(super().headers.getlist("authorization")) or None

    @property
    def media_type(self) -> str:
        """The body's media type without parameters, or several joined ones. Empty if the client declares none."""
        sent = ", ".join(super().headers.getlist("content-type"))
        return sent.partition(";")[0].strip().lower()

    @property
    def target(self) -> str:
        """The path with its query, as the client sent it."""
        query = self.scope["query_string"].decode("latin-1")
        path: str = self.scope["path"]
        return f"{path}?{query}" if query else path

    @property
    def asks_for_dry_run(self) -> bool:
        return self.query_params.get(DRY_RUN) == "true"

    async def read_body(self, limit_bytes: int = MAX_BODY_BYTES) -> None:
        """Reads the whole body. Raises PayloadTooLarge as soon as the size limit is known to be exceeded."""
        declared = self.headers.get("content-length", "")
        # A number too long to be a size isn't converted: int() raises ValueError for more than 4,300 digits.
        if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit_bytes):
            raise PayloadTooLarge
        # Not from `stream`, whose generator takes as long as all the rest.
        chunks: list[bytes] = []
        size, has_more = 0, True
        while has_more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunks.append(message.get("body", b""))
            size, has_more = size + len(chunks[-1]), message.get("more_body", False)
            if size > limit_bytes:
                raise PayloadTooLarge
        self.raw_body = b"".join(chunks)

    def check_headers(self) -> None:
        """Notes each header that must have one value and is repeated, even with equal values."""
        found = [(name, value) for name, value in self.scope["headers"] if name in SINGLE_HEADERS]
        names = [name for name, _ in found]
        repeated = dict.fromkeys(name for name, value in found if b"," in value or names.count(name) > 1)
        message = "Send this header once, with one value and without commas."
        self.problems += [problem([SINGLE_HEADERS[name]], message, "repeated") for name in repeated]

    def parse_body(self, read: Callable[[bytes], Any] | None) -> None:
        """Parses the body, strictly and without coercion. Raises UnsupportedMediaType, and notes other problems.

        read: parses the body of a dialect, in place of JSON.
        """
        try:
            if read is not None:
                self.content = read(self.raw_body)
                headers = super().headers.mutablecopy()
                headers["content-type"] = "application/json"
                self._translated_headers = headers
            elif self.raw_body:
                encoding = self.headers.get("content-encoding", "identity").strip().lower()
                self.content = _parse_json(self.raw_body, self.media_type, encoding)
        except UnsupportedMediaType:
            if all(it["path"] != ["Content-Type"] for it in self.problems):
                raise
            self.is_body_readable = False
        except InvalidPayload as error:
            self.problems += error.details
            self.is_body_readable = False

    def check_query(self, known: Sequence[str], *, ignores_unknown: bool) -> None:
        """Notes each parameter that is repeated or can't be decoded: parsers would read it differently.

        Also each that isn't in `known`, unless unknown ones are ignored.
        """
        names, problems = _check_query(self.scope["query_string"])
        unknown = [name for name in names if name not in known and (name == DRY_RUN or not ignores_unknown)]
        self.problems += [*problems, *(unknown_parameter(name, known) for name in unknown)]

    # The methods below are how FastAPI reads a request.

    @property
    def headers(self) -> Headers:
        return self._translated_headers or super().headers

    async def body(self) -> bytes:
        return self.raw_body

    async def json(self) -> Any:
        return self.content


def _parse_json(body: bytes, media_type: str, encoding: str) -> Any:
    if not (media_type == "application/json" or media_type.endswith("+json")):
        raise UnsupportedMediaType
    if encoding != "identity":
        raise UnsupportedMediaType("Compressed bodies aren't supported. Send the body without Content-Encoding.")
    try:
        content = parse_strictly(body)
    except InvalidJson as error:
        raise InvalidPayload.at([], f"The body is not acceptable JSON: {error}.", "json_invalid") from None
    if content is None:
        # FastAPI would treat it like no body, which some operations accept.
        raise InvalidPayload.at([], "The body is null. Send a JSON object.", "json_invalid")
    return content


def _check_query(raw: bytes) -> tuple[list[str], Problems]:
    """Returns the names of the parameters, and the problems of their encoding."""
    if not raw:
        return [], []
    try:
        pairs = parse_pairs(raw, _MAX_QUERY_PARAMETERS)
    except ValueError:
        message = f"Percent-encode the query string as UTF-8, with at most {_MAX_QUERY_PARAMETERS} parameters."
        return [], [problem([], message, "query_invalid")]
    counts = Counter(name for name, _ in pairs)
    repeated = "This parameter is given more than once. Send it once."
    nul = "This parameter contains the character NUL (%00). Remove it."
    return [*counts], [
        *(problem([name], repeated, "repeated") for name, times in counts.items() if times > 1),
        *(problem([name], nul, "query_invalid") for name, value in pairs if "\0" in value),
    ]


def unknown_parameter(name: str, known: Sequence[str]) -> dict[str, Any]:
    """Returns the problem of a query parameter that the operation doesn't have."""
    *rest, last = known
    listed = f"{', '.join(rest)}{',' * (len(rest) > 1)} and {last}" if rest else last
    return {
        "code": "unknown_parameter",
        "message": f"This operation accepts {listed}, but not this parameter.{did_you_mean(name, known)}",
        "path": [name],
        "known": [*known],
    }


def parse_pairs(text: bytes, max_fields: int, max_bytes: int = MAX_FORM_BYTES) -> list[tuple[str, str]]:
    """Returns the pairs of a form or query in order, empty values included.

    Raises ValueError for text that is longer than max_bytes, is not percent-encoded UTF-8, or has more fields.
    """
    if len(text) > max_bytes:
        raise ValueError("the form is too long")
    return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=max_fields)


class InvalidJson(ValueError):
    """The text is not acceptable JSON; the message is public."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        raise InvalidJson(f"an object has more than {MAX_KEYS:,} keys")
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidJson(f"an object has the key {_shown(twice)} twice")
    return out


def _shown(name: str) -> str:
    """Returns the start of a name, quoted and in ASCII."""
    return json.dumps(name[:_SHOWN_LENGTH])


def _constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number. Send null, or leave the field out")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidJson("a number is larger than 1.8e308, which most programs can't read")
    return value


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise InvalidJson(f"a number has more than {_MAX_DIGITS:,} digits")
    return int(text)


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidJson("a string contains the character NUL. Remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson("a string contains half of a surrogate pair, as if an emoji had been cut in two") from None


def _check_strings(value: Any) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, list):
        for entry in value:
            _check_strings(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            _check_text(key)
            _check_strings(entry)


def _check_depth(value: Any) -> None:
    # Traversed level by level, without recursion, visiting each value once.
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            entry
            for holder in level
            for entry in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(entry, (dict, list))
        ]
    if level:
        raise _too_deep()


def _too_deep() -> InvalidJson:
    return InvalidJson(f"nesting is deeper than {MAX_DEPTH} levels")


def parse_strictly(body: bytes) -> Any:
    """Returns the value of RFC 8259 JSON that any parser reads in the same way. Raises InvalidJson.

    In addition to syntax errors, it rejects duplicate keys, NaN and Infinity (also by overflow, such as 1e400), lone
    surrogates, NUL, invalid UTF-8, a byte order mark, more than 64 levels of nesting, integers with more than 1,000
    digits, objects with more than 10,000 keys, and more than 50,000 opening brackets and braces, including those inside
    strings. It takes linear time, also for bodies that are rejected.
    """
    if body.startswith(codecs.BOM_UTF8):
        raise InvalidJson("it begins with a byte order mark. Save it as UTF-8 without one")
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidJson("it is in UTF-16. Save it as UTF-8")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidJson("it is not valid UTF-8") from None
    openings = body.count(b"[") + body.count(b"{")
    if openings > MAX_OPENINGS:
        raise InvalidJson(f"it has more than {MAX_OPENINGS:,} opening brackets and braces")
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        found = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
        raise InvalidJson(f"{found} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    if openings > MAX_DEPTH:
        _check_depth(value)
    if b"\\u" in body:  # raw surrogates and NUL were rejected above; only escapes remain
        _check_strings(value)
    return value
