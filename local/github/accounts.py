"""The person at the stand-in's pages: their identity for the App, and their access."""

import secrets
import threading

from controlplane.platform.core import clock

# GitHub's codes expire after ten minutes.
_CODE_SECONDS = 600
_TOKEN_SECONDS = 8 * 3600


class Accounts:
    """One person, who has write access to every repository unless a test takes it away."""

    def __init__(self) -> None:
        self.strangers: set[str] = set()
        """Owners to whose repositories the person has no access."""

        self.read_only: set[str] = set()
        """Repositories (owner/name) that the person can only read."""

        self.callback_url: str | None = None
        """The callback URL that is registered for the App. None: the one of the server that was asked."""

        self._codes: dict[str, float] = {}
        self._tokens: dict[str, float] = {}
        self._lock = threading.Lock()

    def issue_code(self) -> str:
        """Returns a code that identifies the person once."""
        code = secrets.token_hex(10)
        self._codes[code] = clock.now() + _CODE_SECONDS
        return code

    def redeem(self, code: object) -> str | None:
        """Returns a token for the code, or None if it is unknown, used, or expired."""
        with self._lock:
            expires = self._codes.pop(code, 0.0) if isinstance(code, str) else 0.0
        if expires <= clock.now():
            return None
        # The form of GitHub's own, with letters that say what this one is.
        token = f"ghu_local{secrets.token_hex(18)}"
        self._tokens[token] = clock.now() + _TOKEN_SECONDS
        return token

    def is_known(self, authorization: str) -> bool:
        """Returns whether it is a token of the person that hasn't expired."""
        return self._tokens.get(authorization.removeprefix("Bearer "), 0.0) > clock.now()
