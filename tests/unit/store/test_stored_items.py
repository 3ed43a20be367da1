"""The stored form doesn't change by accident: functions of the versions before and after read the same items.

`stored_form.txt` has each key, with its parameters in angle brackets, and the attributes of each class. Those with a
question mark are left out while they have their default.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

import controlplane
from controlplane.feedback.store import ReportItem
from controlplane.organizations.items import BillingItem, InvitationItem, LedgerItem, TopUpItem
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import _NEVER, StoredItem, StoredMap, _fields_of, _form_of
from controlplane.scans.reads import Inventory

FORM = Path(__file__).with_name("stored_form.txt")
AT = "2026-03-04T05:06:07.000Z"
PK, LOCAL = "ORG#org_3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
INVITATION = {
    "pk": PK,
    "sk": f"INVITATION#{LOCAL}",
    "invitationId": f"inv_3f8k2m9q7r1s5t6v{LOCAL}",
    "email": "Grace@example.com",
    "role": "member",
    "createdAt": AT,
    "expiresAt": 1_773_205_567,
    "invitedBy": {"id": "usr_5w1n8q2k7m3r9t4v", "name": "Ada", "email": "ada@example.com"},
}


def listed_keys() -> Iterator[str]:
    """Yields each key, or part of one, for arguments that are named like the parameters."""
    for name, made in inspect.getmembers(keys, inspect.isfunction):
        parameters = inspect.signature(made).parameters.values()
        if {it.annotation for it in parameters} <= {str, str | None, int} and name not in {"shard_of", "partition_of"}:
            key = made(*(7 if it.annotation is int else f"<{it.name}>" for it in parameters))
            if isinstance(key, str | Key):
                yield f"keys.{name}: {key if isinstance(key, str) else ' '.join(key)}"


def listed_classes() -> Iterator[str]:
    for module in pkgutil.walk_packages(controlplane.__path__, "controlplane."):
        importlib.import_module(module.name)
    found: set[Any] = set()
    for kind in (*_below(StoredMap), Inventory):
        _add(kind, found)
    for name, kind in {f"{it.__module__}.{it.__qualname__}": it for it in found}.items():
        written = [
            attribute if omitted is _NEVER else f"{attribute}?" for _, attribute, _, omitted in _form_of(kind).written
        ]
        yield f"{name.removeprefix('controlplane.')}: {' '.join(written)}"


def _below(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield from [child] if is_dataclass(child) and child.__module__.startswith("controlplane.") else []
        yield from _below(child)


def _add(kind: Any, found: set[Any]) -> None:
    """Adds the class, and those of the maps in it."""
    found.add(kind)
    inner = {part for _, annotation, _ in _fields_of(kind) for part in _parts(annotation)}
    for part in inner - found - {Key, StoredItem}:
        if hasattr(part, "_fields") or issubclass(part, StoredMap):
            _add(part, found)


def _parts(annotation: Any) -> Iterator[type]:
    yield from [annotation] if isinstance(annotation, type) else []
    for part in get_args(annotation):
        yield from _parts(part)


def test_keys_and_attributes_are_those_of_earlier_versions():
    assert sorted([*listed_keys(), *listed_classes()]) == FORM.read_text().splitlines()


def test_attributes_of_other_releases_are_ignored_and_ids_parsed():
    later = {**INVITATION, "later": 1, "invitedBy": {**INVITATION["invitedBy"], "later": 1}}
    assert InvitationItem.from_item(later).to_item() == INVITATION
    with pytest.raises(LookupError):
        InvitationItem.from_item({**INVITATION, "invitationId": f"{INVITATION['invitationId']}x"})


def test_billing_and_the_ledger_are_stored_as_they_were_read():
    off = {"enabled": False, "threshold": None, "amount": None}
    billing = {"pk": PK, "sk": "BILLING", "credits": 0, "topUp": off}
    assert BillingItem(organization_id=PK.removeprefix("ORG#")).to_item() == billing
    used = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "month": "2026-03", "used": 1}
    for stored in (off, used):
        assert TopUpItem.from_item(stored).to_map() == stored
    entry = {"pk": PK, "sk": "LEDGER#01jq2m4n5p6r7s8t9v", "credits": 500, "at": AT, "kind": "top-up", "scanId": "scn_1"}
    assert LedgerItem.from_item(entry).leg.item == entry


def test_a_long_report_keeps_its_fields_in_an_item_of_their_own():
    fields = {"category": "bug", "message": "x" * 600}
    report = ReportItem(reference="FDB-1", caller_id="usr_5w1n8q2k7m3r9t4v", created_at=AT, fields=fields)
    item = report.to_item()
    assert item == {"reference": "FDB-1", "callerId": report.caller_id, "detached": True, "createdAt": AT}
    assert ReportItem.from_items(item, {"pk": "x", "sk": "y", **fields}) == report
    assert ReportItem.from_items(item, None) is None
