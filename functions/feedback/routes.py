"""Routes of `feedback`: create."""

from collections.abc import Mapping
from typing import Annotated, Any

from controlplane.access.access import Access, Requires
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.feedback import store as feedback
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer
from controlplane.platform.http.route import refuses
from controlplane.platform.table.table import Leg
from feedback.schemas import FeedbackCreate, FeedbackReceipt

router = ControlRouter(tags=["Feedback"])

AnyCredential = Annotated[Access[None], Requires(projects="untouched")]


_REPEATED: dict[int | str, Any] = {200: {"description": "The same report was already submitted on this UTC day."}}


@router.post("/v1/feedback", summary="Send feedback", status_code=201, responses=_REPEATED)
@refuses(feedback.HourlyQuotaReached, feedback.IntakePaused)
async def create_feedback(
    access: AnyCredential, body: FeedbackCreate, idempotency_key: IdempotencyKey = None
) -> Answer[FeedbackReceipt]:
    """Reports an unexpected failure, misleading documentation, a missing capability, or a workaround. Free of charge.

    A caller can send 10 new reports per hour. If the same caller repeats a report on the same UTC day, the response is
    200 with the reference of the first one, even if the quota is used up or the intake of new reports is paused. The
    caller is the user of a user token, or the organization of an API key.
    """

    def create(extra_legs: Mapping[str, Leg]) -> Answer[FeedbackReceipt]:
        receipt = feedback.submit_report(access.caller_id, body.given, extra_legs)
        content = FeedbackReceipt(reference=receipt.reference, already_submitted=receipt.already_submitted)
        return Answer(content, 200 if receipt.already_submitted else None)

    return idempotent(access, "createFeedback", idempotency_key, body.given, create)
