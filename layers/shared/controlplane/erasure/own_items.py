"""All items that belong to a person and that keys find, for the export of the person's data."""

from collections.abc import Iterable
from typing import Any

from controlplane.feedback import store as feedback
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.parallel import read_both, read_each
from controlplane.platform.table.table import table


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
    reports = [located for item in others[-1] if (located := feedback.find_keys(item["sk"]))]
    wanted += [key for located in reports for key in located]
    address = normalize_email(email) if email else None
    wanted += [keys.user_email(address)] if address else []
    addressed = [keys.invitee_pk(address), keys.mail_address_pk(address)] if address else []
    found, of_address = read_both(lambda: _find(wanted), lambda: read_each(_list_partition, addressed))
    _add_texts(found, reports)
    return [*account, *found.values(), *(item for items in (*others, *of_address) for item in items)], email


def _list_partition(pk: str) -> list[dict[str, Any]]:
    return list(table.query(pk, consistent=True).items)


def _find(wanted: list[Key]) -> dict[Key, dict[str, Any]]:
    return {key: item for key, item in zip(wanted, table.batch_get(wanted), strict=True) if item is not None}


def _add_texts(found: dict[Key, dict[str, Any]], reports: Iterable[tuple[Key, Key]]) -> None:
    """Moves the texts of each report into its item, as if they were short."""
    for texts_key, key in reports:
        texts = found.pop(texts_key, {})
        if found.get(key, {}).pop("detached", False):
            found[key] = {**texts, **found[key]}
