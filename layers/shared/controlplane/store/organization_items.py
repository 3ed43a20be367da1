"""An organization's stored item and its billing item, which are created and deleted together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from controlplane.store import keys


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


class TopUpItem(NamedTuple):
    """The settings of the automatic purchase of credits, by their stored names."""

    enabled: bool = False
    threshold: int | None = None
    amount: int | None = None

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["enabled"], item["threshold"], item["amount"])


_NO_TOP_UP = TopUpItem()


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
            "topUp": self.top_up._asdict(),
        }
