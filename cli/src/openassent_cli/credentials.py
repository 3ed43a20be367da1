"""The tokens of signed-in profiles: in the keyring of the system, or in a file that only the user can read.

ASSENT_KEYRING=off chooses the file.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import keyring
from keyring.backends import fail, null
from keyring.errors import KeyringError, PasswordDeleteError

from openassent._settings import bearer_token
from openassent_cli import profiles
from openassent_cli.problems import Problem

_SERVICE = "assent"


@dataclass(frozen=True)
class Tokens:
    """The tokens of one sign-in. expires_at: when the access token expires, in seconds since the epoch."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: float
    scope: str


class KeyringStore:
    """place: where the tokens are, for messages."""

    place = "the system's keyring"

    def load(self, profile: str) -> Tokens | None:
        return _tokens(keyring.get_password(_SERVICE, profile))

    def save(self, profile: str, tokens: Tokens) -> None:
        keyring.set_password(_SERVICE, profile, json.dumps(asdict(tokens)))

    def delete(self, profile: str) -> None:
        with contextlib.suppress(PasswordDeleteError):  # it isn't there
            keyring.delete_password(_SERVICE, profile)


class FileStore:
    @property
    def _path(self) -> Path:
        return profiles.folder() / "credentials.json"

    @property
    def place(self) -> str:
        return str(self._path)

    def load(self, profile: str) -> Tokens | None:
        content = self._read().get(profile)
        return None if content is None else _tokens(json.dumps(content))

    def save(self, profile: str, tokens: Tokens) -> None:
        with profiles.locked("credentials"):
            self._write(self._read() | {profile: asdict(tokens)})

    def delete(self, profile: str) -> None:
        with profiles.locked("credentials"):
            content = self._read()
            if content.pop(profile, None) is not None:
                self._write(content)

    def _read(self) -> dict[str, object]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError):
            raise Problem(f"{self._path} can't be read.", "Remove the file, and run `assent login`.") from None
        return content if isinstance(content, dict) else {}

    def _write(self, content: dict[str, object]) -> None:
        profiles.write_private(self._path, json.dumps(content, indent=2) + "\n")


def store() -> KeyringStore | FileStore:
    """Returns the keyring, or the file if the keyring doesn't work."""
    if os.environ.get("ASSENT_KEYRING", "").lower() == "off":
        return FileStore()
    backend = keyring.get_keyring()
    if isinstance(backend, fail.Keyring | null.Keyring) or backend.priority <= 0:
        return FileStore()
    try:
        keyring.get_password(_SERVICE, "availability")  # a desktop's keyring may be installed, but not running
    except KeyringError:
        return FileStore()
    return KeyringStore()


def _tokens(content: str | None) -> Tokens | None:
    """Returns the tokens of a stored text, or None for one that this version can't read."""
    try:
        if content is None:
            return None
        stored = Tokens(**json.loads(content))
        access_token = bearer_token(stored.access_token, "The access token")
        return replace(stored, access_token=access_token, expires_at=float(stored.expires_at))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
