"""HTTP of `feedback`: one report in, its reference out."""

from collections.abc import Mapping
from typing import Annotated, Any

from controlplane.access import Access, Requires
from controlplane.app import ControlRouter
from controlplane.described import refuses
from controlplane.envelope import Answer
from controlplane.idempotency import IdempotencyKey, idempotent
from controlplane.store.table import Leg
from feedback import service
from feedback.schemas import FeedbackCreate, FeedbackReceipt

router = ControlRouter(tags=["Feedback"])

AnyCredential = Annotated[Access[None], Requires()]


_ALSO: dict[int | str, Any] = {200: {"description": "The same report was taken before, on the same UTC day."}}


@router.post("/v1/feedback", operation_id="createFeedback", summary="Send feedback", status_code=201, responses=_ALSO)
@refuses(service.HourlyQuotaReached, service.IntakePaused)
async def create_feedback(
    access: AnyCredential, body: FeedbackCreate, idempotency_key: IdempotencyKey = None
) -> Answer[FeedbackReceipt]:
    """Reports an unexpected failure, misleading documentation, a missing capability or a workaround.

    Nothing is charged. The same report of the same caller answers 200 for the rest of the UTC day, with the reference
    it got first, also while the intake of new reports is paused or the caller's quota of 10 an hour is used up. The
    caller is the person behind a user token, and the organization behind an API key.
    """

    def create(first: Mapping[str, Leg]) -> Answer[FeedbackReceipt]:
        receipt = service.submit_report(access.caller_id, body.given, first)
        shown = FeedbackReceipt(reference=receipt.reference, already_submitted=receipt.already_submitted)
        return Answer(shown, 200 if receipt.already_submitted else None)

    return idempotent(access, "createFeedback", idempotency_key, body.given, create)
