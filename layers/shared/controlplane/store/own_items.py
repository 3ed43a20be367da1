"""All items that belong to a person and that keys find, for the export of the person's data."""

from typing import Any

from controlplane.core.emails import normalize_email
from controlplane.store import feedback, keys
from controlplane.store.keys import Key
from controlplane.store.parallel import read_both, read_each
from controlplane.store.table import table


def list_own_items(user_id: str) -> tuple[list[dict[str, Any]], str | None]:
    """Returns the person's items, and the address of the account, or None if it was deleted. Takes two round trips."""
    owned = [
        keys.user_pk(user_id),
        keys.credentials_pk(user_id),
        keys.blocks_pk(user_id),
        keys.mails_pk(user_id),
        keys.feedback_by_pk(user_id),
    ]
    account, *others = read_each(_list_partition, owned)
    email = next((str(item["email"]) for item in account if item["sk"] == keys.PROFILE_SK), None)
    wanted = [
        keys.identity(digest)
        for item in account
        if item["sk"].startswith(keys.ISSUER_PREFIX)
        for digest in item["identities"]
    ]
    wanted += [
        keys.member(item["organizationId"], user_id)
        for item in account
        if item["sk"].startswith(keys.MEMBERSHIP_PREFIX)
    ]
    reports = [feedback.find_keys(item["sk"]) for item in others[-1]]
    wanted += [report for located in reports if located for report in located[1:]]
    address = normalize_email(email) if email else None
    wanted += [keys.user_email(address)] if address else []
    addressed = [keys.invitee_pk(address), keys.mail_address_pk(address)] if address else []
    found, of_address = read_both(lambda: _find(wanted), lambda: read_each(_list_partition, addressed))
    return [*account, *found, *(item for items in (*others, *of_address) for item in items)], email


def _list_partition(pk: str) -> list[dict[str, Any]]:
    return list(table.query(pk, consistent=True).items)


def _find(wanted: list[Key]) -> list[dict[str, Any]]:
    return [item for item in table.batch_get(wanted) if item is not None] if wanted else []
