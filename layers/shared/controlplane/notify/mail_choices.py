"""Which emails a person wants to receive, for each of their organizations. A missing choice is on."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from controlplane.people import users
from controlplane.platform.table import keys
from controlplane.platform.table.legs import set_expression
from controlplane.platform.table.table import Check, Leg, LegFailed, Unrecorded, Update, table

# New findings of priority P0, low credits, a disabled webhook, a leaked API key, and the weekly digest.
Choice = Literal["finding", "credits", "webhook", "key", "digest"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
# Only admins and owners get these, because only they can act on them.
FOR_ADMINS: frozenset[Choice] = frozenset({"credits", "webhook", "key"})

# Two legs fewer than a transaction takes.
_AT_ONCE = 98

# The kinds that are on, by organization.
type Chosen = Mapping[str, Iterable[Choice]]


def find_choices(user_id: str, organization_ids: Iterable[str]) -> dict[str, set[Choice]]:
    """Returns the kinds that are on for the person, by organization. Consistent."""
    wanted = list(organization_ids)
    found = table.batch_get([keys.mail_choice(user_id, it) for it in wanted]) if wanted else []
    return {it: _read(item) for it, item in zip(wanted, found, strict=True)}


def find_receivers(organization_id: str, user_ids: list[str], choice: Choice) -> list[str]:
    """Returns those of the people who want this kind of email about the organization. Consistent."""
    found = table.batch_get([keys.mail_choice(it, organization_id) for it in user_ids]) if user_ids else []
    return [it for it, item in zip(user_ids, found, strict=True) if choice in _read(item)]


def save_choices(user_id: str, chosen: Chosen) -> None:
    """Stores the kinds that are on for each of these organizations, unless the account was deleted."""
    legs = {
        it: Update(
            keys.mail_choice(user_id, it),
            set_expression(CHOICES),
            None,
            {choice: choice in kinds for choice in CHOICES},
        )
        for it, kinds in chosen.items()
    }
    names = list(legs)
    for start in range(0, len(names), _AT_ONCE):
        _write(user_id, {name: legs[name] for name in names[start : start + _AT_ONCE]})


def turn_off(user_id: str, organization_id: str, choice: Choice) -> None:
    """Turns one kind off, unless the account was deleted. Other kinds stay as they are."""
    key = keys.mail_choice(user_id, organization_id)
    _write(user_id, {"choice": Update(key, set_expression([choice]), None, {choice: False})})


def wanted_check(user_id: str, organization_id: str, choice: Choice) -> Check:
    """Returns a leg that checks, at commit, that the person hasn't turned this kind of email off."""
    key = keys.mail_choice(user_id, organization_id)
    return Check(key, f"attribute_not_exists(#{choice}) OR #{choice} = :on", {"on": True})


def forget(user_id: str) -> None:
    """Removes the choices of a deleted account."""
    found = table.query(keys.user_pk(user_id), prefix=keys.MAIL_CHOICE_PREFIX, consistent=True).items
    table.delete_all((keys.Key(item["pk"], item["sk"]) for item in found), Unrecorded.ERASURE)


def _read(item: Mapping[str, Any] | None) -> set[Choice]:
    return {choice for choice in CHOICES if item is None or item.get(choice, True)}


def _write(user_id: str, legs: Mapping[str, Leg]) -> None:
    try:
        table.transact({"account": users.exists_check(user_id), **legs}, Unrecorded.ACCOUNT)
    except LegFailed as failure:
        if failure.leg != "account":
            raise
