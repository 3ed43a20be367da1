"""An organization's stored item and its billing item, which are created and deleted together, and its ledger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from controlplane.platform.table import keys
from controlplane.platform.table.codec import present
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Put


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationItem:
    """An organization. `key_version` changes whenever its set of API keys changes."""

    organization_id: str
    name: str
    slug: str
    plan: str
    owners: int
    keys: int
    key_version: int
    projects: int
    created_at: str

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            organization_id=item["organizationId"],
            name=item["name"],
            slug=item["slug"],
            plan=item["plan"],
            owners=item["owners"],
            keys=item["keys"],
            key_version=item["keyVersion"],
            projects=item["projects"],
            created_at=item["createdAt"],
        )

    def to_item(self) -> dict[str, Any]:
        return {
            **keys.organization(self.organization_id)._asdict(),
            "organizationId": self.organization_id,
            "name": self.name,
            "slug": self.slug,
            "plan": self.plan,
            "owners": self.owners,
            "keys": self.keys,
            "keyVersion": self.key_version,
            "projects": self.projects,
            "createdAt": self.created_at,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpItem:
    """The settings of the automatic top-up, and how many there were in `month`, such as 2026-03.

    If a charge would leave fewer than `threshold` credits, `amount` credits are added, at most `monthly_limit` times in
    a calendar month (UTC).
    """

    enabled: bool = False
    threshold: int | None = None
    amount: int | None = None
    monthly_limit: int | None = None
    month: str | None = None
    used: int = 0

    def used_in(self, month: str) -> int:
        return self.used if self.month == month else 0

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            enabled=item["enabled"],
            threshold=item["threshold"],
            amount=item["amount"],
            monthly_limit=item.get("monthlyLimit"),
            month=item.get("month"),
            used=item.get("used", 0),
        )

    def to_item(self) -> dict[str, Any]:
        """Returns exactly the map that `from_item` read."""
        return {
            "enabled": self.enabled,
            "threshold": self.threshold,
            "amount": self.amount,
            **present(monthlyLimit=self.monthly_limit, month=self.month, used=self.used or None),
        }


_NO_TOP_UP = TopUpItem()

LedgerKind = Literal["unlock", "top-up", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerItem:
    """A change of an organization's balance. An automatic top-up has the scan whose charge needed it."""

    key: Key
    kind: LedgerKind
    credits: int
    at: str
    scan_id: str | None = None
    by: str | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            key=Key(item["pk"], item["sk"]),
            kind=item["kind"],
            credits=item["credits"],
            at=item["at"],
            scan_id=item.get("scanId"),
            by=item.get("by"),
        )

    @property
    def leg(self) -> Put:
        """Returns the leg that adds the entry to the ledger."""
        item = {**self.key._asdict(), "kind": self.kind, "credits": self.credits, "at": self.at}
        return Put({**item, **present(scanId=self.scan_id, by=self.by)}, "attribute_not_exists(pk)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingItem:
    """An organization's credits."""

    organization_id: str
    credits: int = 0
    top_up: TopUpItem = _NO_TOP_UP

    @classmethod
    def from_item(cls, organization_id: str, item: Mapping[str, Any]) -> Self:
        top_up = TopUpItem.from_item(item["topUp"])
        return cls(organization_id=organization_id, credits=item["credits"], top_up=top_up)

    def to_item(self) -> dict[str, Any]:
        return {
            **keys.billing(self.organization_id)._asdict(),
            "credits": self.credits,
            "topUp": self.top_up.to_item(),
        }
