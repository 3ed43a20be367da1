"""Tokens of people that were found in public: their sign-ins are revoked, and the person is told by email.

No organization's audit log has an entry, as with every other end of a sign-in.
"""

from typing import Any, NamedTuple, Self

from controlplane.api_keys.leaked import Leak
from controlplane.people import credential_index, token_families
from controlplane.people import tokens as user_tokens
from controlplane.people.token_families import TokenFamilyItem
from controlplane.platform.core import clock, ids, tokens
from controlplane.platform.core.clock import expiry
from controlplane.platform.queues import events, outbox
from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.table import Leg, LegFailed, Put, Unrecorded, table

# The kind of the message to `notifications` about it.
KIND = "send-leak-notice"
_KEPT_DAYS = 90
# Stored in revoked token families.
_REASON = "found in public"


class LeakedToken(NamedTuple):
    """A sign-in that was revoked. client: the OAuth client of a device, or the index's name for another credential."""

    client: str
    leak: Leak

    @classmethod
    def from_item(cls, item: dict[str, Any]) -> Self:
        return cls(item["client"], Leak(item["source"], item.get("url")))


def find_leaked_token(user_id: str, local: str) -> LeakedToken | None:
    """Returns the record of a leaked token that was revoked in the last 90 days. Consistent."""
    item = table.get(keys.leaked_token(user_id, local))
    return LeakedToken.from_item(item) if item else None


def revoke_token(secret: str, leak: Leak) -> bool:
    """Revokes an access token with its device, or a session. Returns whether it worked. Raises Throttled."""
    token = user_tokens.find_token(secret)
    if token is None or token.expires_at <= clock.now():
        return False
    if token.family_id is not None:
        return _revoke_family(token.family_id, leak)
    client = credential_index.PAGES if token.kind == "session" else credential_index.OPERATOR
    try:
        notice = _notice(token.user_id, client, leak)
        table.transact({**user_tokens.revocation(token), **notice}, Unrecorded.CREDENTIAL)
    except LegFailed:
        return False  # it was revoked in between
    return True


def revoke_refresh_token(secret: str, leak: Leak) -> bool:
    """Revokes the device of a refresh token, used or not. Returns whether the device had access. Raises Throttled."""
    family_id = tokens.family_of(secret)
    return family_id is not None and _revoke_family(family_id, leak)


def _revoke_family(family_id: str, leak: Leak) -> bool:
    def notice(family: TokenFamilyItem) -> dict[str, Leg]:
        return _notice(family.user_id, family.client_id, leak)

    return token_families.revoke(family_id, _REASON, notice)


def _notice(user_id: str, client: str, leak: Leak) -> dict[str, Leg]:
    """Returns the legs of the record for the person's email, and of the message, which has only IDs."""
    local = ids.new_local()
    known = {"client": client, "source": leak.source, **present(url=leak.url), **expiry(_KEPT_DAYS)}
    message = {"kind": KIND, "version": 1, "userId": user_id, "leak": local}
    return {
        "leak": Put({**keys.leaked_token(user_id, local)._asdict(), **known}),
        "message": outbox.new_entry(events.QUEUE, message, after_seconds=0).leg,
    }
