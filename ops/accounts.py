"""Ending what a person holds: every way in that they have, and the account itself.

Nothing finds credentials by their person, because no request ever needs to: they are looked for in the whole table,
which costs a read of it each time. An account goes in this order: its ways in, its memberships, the account. What a
request that was under way leaves behind is looked for afterwards; an interrupted command is finished by the next one.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from controlplane import ids
from controlplane.store import codec, deletions, invitations, keys, organizations, token_families, users
from controlplane.store.keys import Key
from controlplane.store.members import LastOwner
from controlplane.store.table import Delete, LegFailed, StoreError, Throttled, table
from ops import members, personal_data
from ops.personal_data import Subject

# A look that finds nothing ends the search. Each finds less than the one before, unless somebody keeps signing in.
_LOOKS = 5

_TOKEN, _FAMILY, _DEVICE, _IDENTITY = (
    builder("").pk for builder in (keys.user_token, keys.token_family, keys.device_request, keys.identity)
)


class LastOwnerOf(StoreError):
    """The person is the last owner of these organizations, by slug."""

    def __init__(self, slugs: list[str]) -> None:
        super().__init__(", ".join(slugs))
        self.slugs = slugs


@dataclass(frozen=True, slots=True)
class Ended:
    """How many of each were ended. A device that was let in and never came for its token is in none of them."""

    tokens: int = 0
    devices: int = 0
    sign_ins: int = 0

    def plus(self, other: "Ended") -> "Ended":
        return Ended(self.tokens + other.tokens, self.devices + other.devices, self.sign_ins + other.sign_ins)

    def document(self) -> dict[str, int]:
        return {"tokens": self.tokens, "devices": self.devices, "signIns": self.sign_ins}


def revoke_credentials(user_id: str) -> Ended:
    """Ends every session, token and let-in device of the person, who may sign in again. Raises Throttled."""
    ended = Ended()
    for _ in range(_LOOKS):
        found = _find(user_id, everything=False)
        if not found:
            return ended
        ended = ended.plus(_end(found, forget=False))
    raise Throttled("new credentials keep appearing")


def delete_account(user_id: str, profile: dict[str, Any] | None, *, with_organizations: bool = False) -> dict[str, Any]:
    """Removes the person: credentials, sign-in, invitations, memberships, whatever names them, account.

    profile: None if only the rest of an interrupted deletion is to be removed.
    with_organizations: deletes the organizations that would be left without an owner.

    Raises LastOwnerOf, in which case nothing was changed, unless they became the last owner meanwhile; Throttled.
    """
    last = _last_owner_of(user_id)
    if last and not with_organizations:
        raise LastOwnerOf(last)
    subject = Subject(user_id, profile["email"] if profile else None)
    ended = _end(_find(user_id, everything=True), forget=True)
    left = _leave_all(user_id, with_organizations=with_organizations)
    declined = _decline_all(profile) if profile else 0
    # Once the account is gone its address is not known any more: a repetition finds what names the address only here.
    erased = Counter(personal_data.erase(subject))
    if profile:
        _remove_profile(profile)
    # From here on nobody can sign in to the account. What was begun before may have written in between.
    for _ in range(_LOOKS):
        left += _leave_all(user_id, with_organizations=with_organizations)
        found = _find(user_id, everything=True)
        if not found:
            erased.update(personal_data.erase(subject))
            return {**ended.document(), "memberships": left, "invitations": declined, "erased": dict(erased)}
        ended = ended.plus(_end(found, forget=True))
    raise Throttled("new credentials keep appearing")


def is_left_over(user_id: str) -> bool:
    """Whether something of an account is left that is gone itself."""
    if not ids.is_root(ids.USER, user_id):
        return False
    return bool(
        organizations.get_account(user_id).memberships
        or _find(user_id, everything=True)
        or personal_data.is_left(Subject(user_id, None))
    )


def _find(user_id: str, *, everything: bool) -> list[Key]:
    """What lets the person in, wherever it stands. `everything` is also the sign-in itself, and what is spent."""
    kinds = {"token": _TOKEN, "family": _FAMILY, "device": _DEVICE, **({"identity": _IDENTITY} if everything else {})}
    values = {"user": user_id, **kinds}
    among = " OR ".join(f"begins_with(#pk, :{name})" for name in kinds)
    condition = f"#userId = :user AND ({among})"
    names = {"#userId": "userId", "#pk": "pk", "#sk": "sk", "#status": "status", "#familyId": "familyId"}
    if not everything:
        # Families that ended, and devices that were refused, let nobody in.
        condition += " AND (attribute_not_exists(#state) OR #state = :live)"
        condition += " AND (attribute_not_exists(#status) OR #status IN (:approved, :redeemed))"
        names["#state"] = "state"
        values |= {"live": "live", "approved": "approved", "redeemed": "redeemed"}
    found = dict[Key, None]()
    for item in _scan(
        FilterExpression=condition,
        ProjectionExpression="#pk, #sk, #status, #familyId",
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={f":{name}": codec.encode(value) for name, value in values.items()},
    ):
        key = Key(item["pk"], item["sk"])
        if not everything and item.get("status") == "redeemed":
            # It may have come for its token during this look, which then had passed the place of its family already.
            key = keys.token_family(item["familyId"])
            family = table.get(key)
            if family is None or family["state"] != "live":
                continue
        found[key] = None
    return list(found)


def _scan(**parameters: Any) -> Iterator[dict[str, Any]]:
    """Every item that passes the filter. Consistent: what was written before it began is found."""
    parameters |= {"TableName": table.name, "ConsistentRead": True}
    while True:
        answer = table.client.scan(**parameters)
        for item in answer["Items"]:
            yield codec.decode_item(item)
        if "LastEvaluatedKey" not in answer:
            return
        parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _end(found: list[Key], *, forget: bool) -> Ended:
    """Ends what was found: devices that wait first, then families with their tokens, then what is left.

    forget: also removes what a family that ended would leave behind.
    """
    by_kind = {
        kind: [key for key in found if key.pk.startswith(kind)] for kind in (_DEVICE, _FAMILY, _TOKEN, _IDENTITY)
    }
    table.delete_all(by_kind[_DEVICE])  # one that is approved and not redeemed would become a family
    for family in by_kind[_FAMILY]:
        token_families.revoke(family.pk.removeprefix(_FAMILY), "ended by the operator")
    if forget:
        table.delete_all(by_kind[_FAMILY])
    table.delete_all(by_kind[_TOKEN] + by_kind[_IDENTITY])
    return Ended(*(len(by_kind[kind]) for kind in (_TOKEN, _FAMILY, _IDENTITY)))


def _last_owner_of(user_id: str) -> list[str]:
    owned = [it for it in organizations.get_account(user_id).memberships if it.role == "owner"]
    items = table.batch_get([keys.organization(membership.organization_id) for membership in owned])
    return sorted(
        membership.slug
        for membership, organization in zip(owned, items, strict=True)
        if organization is not None and organization["owners"] < 2
    )


def _leave_all(user_id: str, *, with_organizations: bool) -> int:
    """Ends the person's memberships: how many. Raises LastOwnerOf, once all that can be left are.

    with_organizations: deletes the organizations that would be left without an owner.
    """
    left, last = 0, []
    for membership in organizations.get_account(user_id).memberships:
        try:
            members.remove_member(membership.organization_id, user_id)
        except members.UnknownMember:
            continue  # somebody else was quicker
        except LastOwner:
            if not with_organizations:
                last.append(membership.slug)
                continue
            with suppress(organizations.UnknownOrganization):
                deletions.delete_organization(membership.organization_id)
        left += 1
    if last:
        raise LastOwnerOf(sorted(last))
    return left


def _decline_all(profile: dict[str, Any]) -> int:
    """Ends the invitations to the person's address: how many."""
    ended = 0
    for invitation in invitations.list_for_address(profile["email"]):
        try:
            invitations.decline_invitation(invitation.invitation_id, profile)
        except invitations.UnknownInvitation:
            continue  # cancelled or expired a moment ago
        ended += 1
    return ended


def _remove_profile(profile: dict[str, Any]) -> None:
    """The account and its hold on the address, together. Afterwards the address makes a new account."""
    own = {"user": profile["userId"]}
    try:
        table.transact(
            {
                "profile": Delete(keys.user(profile["userId"]), "attribute_exists(pk)"),
                "email": Delete(keys.user_email(users.normalize_email(profile["email"])), "#userId = :user", own),
            }
        )
    except LegFailed as refusal:
        if refusal.leg != "profile" or refusal.item is not None:
            raise
        # Another run of this command was quicker.
