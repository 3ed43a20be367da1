"""The rules of `sweeper`: what is finished in the place of a process that died, and in which order.

Every step may run at any time, twice, and beside the process it takes for dead: the writes of the store decide. What
merely expires needs no step. An invitation, a device request, a token or a kept answer is compared with the clock by
whoever reads it, and TTL takes it away some days later.
"""

from collections.abc import Callable

from aws_lambda_powertools.metrics import MetricUnit

from controlplane import issue_messages, queues
from controlplane.observability import describe, logger, metrics
from controlplane.store import scan_requests, vendors

# By the name under which its count is logged and measured.
STEPS: dict[str, Callable[[], int]] = {
    "ResentMessages": queues.resend,
    "ResumedIssueAttempts": issue_messages.announce_overdue,
    "EndedScans": scan_requests.end_abandoned,
    "FinishedDeletions": vendors.finish_deletions,
}


class StepsFailed(ExceptionGroup[Exception]):
    """Some steps failed. The others ran."""


def sweep() -> dict[str, int]:
    """Runs every step: how much each has finished. Raises StepsFailed, after all of them ran.

    Metrics: what each step finished, under its name, and FailedSteps.
    """
    finished: dict[str, int] = {}
    failures: list[Exception] = []
    for name, step in STEPS.items():
        try:
            finished[name] = step()
        except Exception as failure:  # noqa: BLE001 (the edge: one step must not keep the others from running)
            logger.error("step failed", extra={"step": name, **describe(failure)})
            failures.append(failure)
        else:
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=finished[name])
    metrics.add_metric(name="FailedSteps", unit=MetricUnit.Count, value=len(failures))
    logger.info("swept", extra={"finished": finished})
    if failures:
        raise StepsFailed("sweep", failures)
    return finished
