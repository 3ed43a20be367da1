"""Reports of leaked secrets, in the format of GitHub's secret scanning partner program.

A report contains secrets, so neither it nor a part of it is logged, stored, or quoted in an error. A reported key is
revoked at once, without asking an admin: public secrets are used within minutes.
"""

import json
import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from controlplane.api_keys import leaked
from controlplane.api_keys.leaked import Leak
from controlplane.platform.core import tokens
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.settings import settings

# Reports have fewer secrets. Each secret takes three calls to the table, and a request has seconds for them.
_MOST_SECRETS = 100
# Printable ASCII without the characters that have a meaning in messages.
_URL = re.compile(r"https://[!#-;=?-{}~]{1,290}")
_SOURCE = re.compile(r"[a-z_]{1,40}")
_FRAGMENT = re.compile(r"L[0-9]{1,9}")


class _Reported(NamedTuple):
    token: str
    token_type: str
    leak: Leak


def revoke_reported(body: bytes) -> list[dict[str, str]]:
    """Revokes the secrets. Returns, for each of them, whether it was a key or a token of this service.

    Raises InvalidPayload, Throttled. Can be repeated, but a secret that is already revoked isn't recognized: nothing of
    it is stored anymore. Secrets of webhooks aren't recognized either: they are stored sealed, and other services have
    the same prefix.
    """
    reported = _read(body)
    labels: dict[str, str] = {}
    for it in reported:
        if it.token not in labels:
            labels[it.token] = "true_positive" if _revoke(it) else "false_positive"
    return [{"token_raw": it.token, "token_type": it.token_type, "label": labels[it.token]} for it in reported]


def _revoke(reported: _Reported) -> bool:
    brand, prefix = settings.service_brand, tokens.prefix_of(reported.token)
    if prefix == brand:
        return leaked.revoke_key(tokens.digest(reported.token), reported.leak)
    if prefix in {brand + tokens.ACCESS, brand + tokens.SESSION}:
        return leaked.revoke_token(reported.token, reported.leak)
    return leaked.revoke_refresh_token(reported.token, reported.leak)


def _read(body: bytes) -> list[_Reported]:
    try:
        listed = json.loads(body)
        if not 0 < len(listed) <= _MOST_SECRETS:
            raise ValueError  # noqa: TRY301
        secrets = [it["token"] for it in listed]
        return [_Reported(it["token"], it["type"], _read_leak(it, secrets)) for it in map(_checked, listed)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        message = f"The body isn't a report of secret scanning with up to {_MOST_SECRETS} secrets."
        raise InvalidPayload.at([], message, "invalid") from None


def _checked(reported: Any) -> dict[str, str]:
    """Returns the object. Raises TypeError unless all of its fields are texts or null."""
    found = {name: value for name, value in reported.items() if value is not None}
    if not all(isinstance(value, str) for value in found.values()):
        raise TypeError
    return found


def _read_leak(reported: dict[str, str], secrets: list[str]) -> Leak:
    source = reported.get("source", "")
    url = _public_url(reported.get("url", ""))
    if url is not None and any(secret in url for secret in secrets):
        url = None
    return Leak(source if _SOURCE.fullmatch(source) else "unknown", url)


def _public_url(text: str) -> str | None:
    """Returns the address without its query, or None unless it is the short address of a web page."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if not _URL.fullmatch(text) or parts.username is not None:
        return None
    lines = parts.fragment if _FRAGMENT.fullmatch(parts.fragment) else ""
    return parts._replace(query="", fragment=lines).geturl()
