"""An organization's stored item and its billing item, which are created and deleted together, and its ledger."""

from dataclasses import dataclass
from typing import Annotated, Literal

from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Put
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem, StoredMap


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationItem(StoredItem):
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

    @property
    def key(self) -> Key:
        return keys.organization(self.organization_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpItem(StoredMap):
    """The settings of the automatic top-up, and how many there were in `month`, such as 2026-03.

    If a charge would leave fewer than `threshold` credits, `amount` credits are added, at most `monthly_limit` times in
    a calendar month (UTC).
    """

    enabled: bool = False
    threshold: int | None = None
    amount: int | None = None
    monthly_limit: Annotated[int | None, SPARSE] = None
    month: Annotated[str | None, SPARSE] = None
    used: Annotated[int, SPARSE] = 0

    def used_in(self, month: str) -> int:
        return self.used if self.month == month else 0


_NO_TOP_UP = TopUpItem()

LedgerKind = Literal["unlock", "top-up", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerItem(StoredMap):
    """A change of an organization's balance. An automatic top-up has the scan whose charge needed it."""

    key: Annotated[Key, Derived(lambda item: Key(item["pk"], item["sk"]))]
    kind: LedgerKind
    credits: int
    at: str
    scan_id: Annotated[str | None, SPARSE] = None
    by: Annotated[str | None, SPARSE] = None

    @property
    def leg(self) -> Put:
        """Returns the leg that adds the entry to the ledger."""
        return Put({**self.key._asdict(), **self.to_map()}, "attribute_not_exists(pk)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingItem(StoredItem):
    """An organization's credits."""

    organization_id: Annotated[str, Derived(lambda item: keys.organization_of(item["pk"]))]
    credits: int = 0
    top_up: TopUpItem = _NO_TOP_UP

    @property
    def key(self) -> Key:
        return keys.billing(self.organization_id)
