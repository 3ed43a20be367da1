"""Changes many findings at once."""

from collections.abc import Sequence

from openassent._async import _operations
from openassent._calls import create
from openassent.models import InboxItemChange, InboxItemResult, InboxItemResults


class AsyncInbox(_operations.AsyncInbox):
    """The organization's findings."""

    async def update_many(
        self,
        changes: Sequence[InboxItemChange],
        *,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[InboxItemResult]:
        """Changes up to 100 findings, each on its own. Some can fail while others succeed.

        Returns the item or the error of each change, in the same order.
        """
        items = [it.model_dump(mode="json", by_alias=True, exclude_unset=True) for it in changes]
        organization_id = self._organization(organization_id)
        call = create(
            "/v1/inbox",
            {"items": items},
            idempotency_key,
            method="PATCH",
            dry_run=dry_run,
            organizationId=organization_id,
        )
        return (await self._core.result(call, InboxItemResults)).results
