"""Addresses that receive no emails: they don't exist, their owner reported an email, or asked for no more."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from controlplane.platform.core import clock
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.table import Check, Delete, Put, Unrecorded, Update, table

StopReason = Literal["returned", "complained", "stopped"]

# A counter of a day is needed until the day is over everywhere.
_COUNT_SECONDS = 2 * 86_400


class Stop(NamedTuple):
    """Why and since when an address receives no emails."""

    reason: StopReason
    at: str


def find_stops(emails: Iterable[str]) -> dict[str, Stop]:
    """Returns the addresses among these that receive no emails, normalized. Consistent, and one round trip per 100."""
    wanted = list(dict.fromkeys(map(normalize_email, emails)))
    found = table.batch_get([keys.mail_stop(address) for address in wanted]) if wanted else []
    return {
        address: Stop(item["reason"], item["at"])
        for address, item in zip(wanted, found, strict=True)
        if item is not None
    }


def stop(email: str, reason: StopReason) -> None:
    """Stops all further emails to the address."""
    key = keys.mail_stop(normalize_email(email))
    table.put(Put({**key._asdict(), "reason": reason, "at": clock.timestamp()}), Unrecorded.ACCOUNT)


def resume(email: str) -> None:
    """Lets the address receive emails again."""
    table.delete(Delete(keys.mail_stop(normalize_email(email))), Unrecorded.ACCOUNT)


def open_check(email: str) -> Check:
    """Returns a leg that checks, at commit, that emails to the address aren't stopped."""
    return Check(keys.mail_stop(normalize_email(email)), "attribute_not_exists(pk)")


def count_invitation(
    organization_id: str, email: str, most_of_organization: int, most_to_address: int
) -> dict[str, Update]:
    """Returns the legs that count an invitation's email. They fail if there were enough today."""
    day = clock.timestamp()[:10]
    return {
        "organizationDay": _count(keys.mail_day(organization_id, day), most_of_organization),
        "addressDay": _count(keys.mail_day_of_address(normalize_email(email), day), most_to_address),
    }


def forget(email: str) -> None:
    """Removes everything stored about emails to the address of a deleted account."""
    found = table.query(keys.mail_address_pk(normalize_email(email)), consistent=True).items
    table.delete_all((keys.Key(item["pk"], item["sk"]) for item in found), Unrecorded.ERASURE)


def _count(key: keys.Key, most: int) -> Update:
    return Update(
        key,
        "SET #expiresAt = :until ADD #invitations :one",
        "attribute_not_exists(#invitations) OR #invitations < :most",
        {"until": int(clock.now()) + _COUNT_SECONDS, "one": 1, "most": most},
    )
