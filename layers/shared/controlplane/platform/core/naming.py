"""Names that people choose, and the slugs derived from them; email addresses; branches and folders of repositories."""

import re
import string
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

# Line breaks, other control characters, and direction overrides, which make text display differently than stored.
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
# Invisible characters: spaces, joiners, variation selectors, fillers.
_BLANKS = (
    r"\s\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0"
)
_MAX_NAME = 100
_FORBIDDEN = re.compile(f"[{_CONTROLS}]")
_VISIBLE = re.compile(f"[^{_CONTROLS}{_BLANKS}]")
# Latin letters that Unicode doesn't decompose into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "\u0131": "i", "ł": "l", "þ": "th"}
)
_APOSTROPHES = str.maketrans("", "", "'\u2019\u02bc")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
# Rules for branch names, from git-check-ref-format(1). GitHub accepts at most 255 bytes.
_BRANCH = (
    r"(?![./-])(?!@$)(?!.*(?:\.\.|@\{|//|/\.|[./]$|\.lock(?:/|$)))"
    r"[^\x00-\x20\x7f~^:?*\[\\]{1,255}"
)
_BRANCH_BYTES = 255
# A path relative to the root of a repository that doesn't leave it.
_FOLDER = r"(?!/)(?!.*(?:^|/)\.\.?(?:/|$))(?!.*/$)[^\x00-\x1f\x7f\\]{1,200}"
# From the API's description. The domain then has at most 253 characters, as in the DNS.
MAX_EMAIL_LENGTH = 255
# RFC 5321 section 4.5.3.1.
_MAX_LOCAL_LENGTH = 64
# The forms of RFC 5321's Mailbox that providers use: a dot-atom and a host name with a top-level domain. Quoted local
# parts, address literals, and non-ASCII characters are rejected; internationalized domains must be in xn-- form.
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]++")
_DOMAIN_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# ASCII only: Unicode maps other letters to ASCII (the Kelvin sign becomes k), so two people could share an account.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_BRANCH_PATTERN = re.compile(_BRANCH)
_FOLDER_PATTERN = re.compile(_FOLDER)


def _check_characters(name: str) -> str:
    if _FORBIDDEN.search(name):
        raise PydanticCustomError("control_characters", "Must not contain line breaks or other control characters.")
    # Joiners and variation selectors are allowed inside names (an emoji, a Persian word), but are invisible alone.
    if not _VISIBLE.search(name):
        raise PydanticCustomError("invisible", "Must contain at least one visible character.")
    return name


def clean_name(text: str) -> str | None:
    """Returns the trimmed text, or None if it isn't a valid name. Applies the rule of `Name` to forms."""
    name = text.strip()
    if not 1 <= len(name) <= _MAX_NAME or _FORBIDDEN.search(name) or not _VISIBLE.search(name):
        return None
    return name


# The same rule as a pattern, which counts characters after trimming. It doesn't match names that begin with a joiner.
_JSON_SCHEMA = {
    "type": "string",
    "pattern": rf"^[ \t-\r\x85]*[^{_CONTROLS}{_BLANKS}][^{_CONTROLS}]{{0,99}}[ \t-\r\x85]*$",
}

# Trimmed first, so that the length limit applies to the stored text.
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_MAX_NAME),
    AfterValidator(_check_characters),
    WithJsonSchema(_JSON_SCHEMA),
]


def slugify(name: str) -> str:
    """Returns the name as lowercase ASCII letters and digits with single hyphens between groups. May be empty.

    The length isn't limited. Marks on Latin letters are removed. Letters of other scripts are dropped, because any
    transliteration would be wrong in some language; users can choose the slug themselves.
    """
    plain = name.lower().translate(_LETTERS).translate(_APOSTROPHES)
    # Normalized per character: sorting a long run of marks takes quadratic time, and marks are dropped anyway.
    parts = (part for character in plain for part in unicodedata.normalize("NFKD", character))
    letters = "".join(part for part in parts if not unicodedata.combining(part))
    return _SEPARATORS.sub("-", letters.lower()).strip("-")


def is_branch(text: str) -> bool:
    """Returns whether a branch can have this name."""
    return _BRANCH_PATTERN.fullmatch(text) is not None and len(text.encode(errors="replace")) <= _BRANCH_BYTES


def is_folder(text: str) -> bool:
    """Returns whether the text is the path of a folder inside a repository."""
    return _FOLDER_PATTERN.fullmatch(text) is not None


def _check_branch(name: str) -> str:
    if not is_branch(name):
        raise PydanticCustomError(
            "invalid_branch", "This can't be the name of a branch. Send it as git shows it, such as main."
        )
    return name


def _check_folder(path: str) -> str:
    if not is_folder(path):
        raise PydanticCustomError(
            "invalid_folder", "Send a path relative to the repository's root, for example apps/web."
        )
    return path


Branch = Annotated[str, AfterValidator(_check_branch), WithJsonSchema({"type": "string", "pattern": f"^{_BRANCH}$"})]
Folder = Annotated[str, AfterValidator(_check_folder), WithJsonSchema({"type": "string", "pattern": f"^{_FOLDER}$"})]


def is_email(text: str) -> bool:
    """Returns whether the text is an email address that this service accepts."""
    if len(text) > MAX_EMAIL_LENGTH:
        return False
    local, _, domain = text.partition("@")
    labels = domain.split(".")
    return (
        len(local) <= _MAX_LOCAL_LENGTH
        and all(_ATOM.fullmatch(atom) for atom in local.split("."))
        and len(labels) > 1
        and all(_DOMAIN_LABEL.fullmatch(label) for label in labels)
        and not labels[-1].isdigit()
    )


def normalize_email(email: str) -> str:
    """Returns the form of the address that is compared and used in keys: ASCII letters in lowercase."""
    return email.strip().translate(_LOWER)
