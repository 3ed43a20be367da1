"""Business rules of `feedback`: daily deduplication, an hourly quota for new reports, and pausing the intake."""

from collections.abc import Mapping

from controlplane.core.errors import RateLimited, ServiceUnavailable
from controlplane.store import feedback
from controlplane.store.feedback import NEW_PER_HOUR, Receipt
from controlplane.store.table import Leg


class HourlyQuotaReached(RateLimited):
    message = (
        f"{NEW_PER_HOUR} new reports an hour are taken from one caller. Keep this one and send it as long from now as "
        "the Retry-After header says. Reports sent before can be repeated."
    )

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(retry_after_seconds)
        self.details = {"reason": "feedback_quota", "limit": NEW_PER_HOUR}


class IntakePaused(ServiceUnavailable):
    message = "New reports are temporarily not accepted. Keep the report and send it later."


def submit_report(caller_id: str, report: Mapping[str, str], extra_legs: Mapping[str, Leg]) -> Receipt:
    """Stores the report. Raises HourlyQuotaReached or IntakePaused without writing anything.

    `extra_legs` are legs that precede those of the report in the transaction.
    """
    try:
        return feedback.submit_report(caller_id, report, extra_legs)
    except feedback.QuotaUsedUp as refusal:
        raise HourlyQuotaReached(refusal.seconds) from None
    except feedback.IntakePaused:
        raise IntakePaused from None
