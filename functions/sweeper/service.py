"""The rules of `sweeper`: which work is due, or was left by a crashed process, and in which order it is done.

Every step is idempotent and may run concurrently with the process that it takes for dead: conditional writes in the
store decide. Expiry needs no step: readers of invitations, device requests, tokens, and stored responses check the
expiration time themselves, and TTL deletes the items a few days later.
"""

from aws_lambda_powertools.metrics import MetricUnit

from controlplane.audits import schedules
from controlplane.erasure import cleanup
from controlplane.findings import issue_attempts, snoozes
from controlplane.platform.core import clock
from controlplane.platform.core.observability import describe, logger, metrics
from controlplane.platform.queues import messages
from controlplane.platform.queues.sweep_runs import Step, SweepRun
from controlplane.scans import queue
from controlplane.scans.failures import recover_scans
from sweeper.advisories import match_advisories

# The function's timeout in template.yaml is longer, so that the entry in progress when time runs out can still finish.
SWEEP_SECONDS = 38
# Keyed by the name of the step's count in logs and metrics.
STEPS: dict[str, Step] = {
    "ResentMessages": messages.resend,
    "ResumedIssueAttempts": issue_attempts.resend_overdue,
    "RecoveredScans": recover_scans,
    "ScheduledScans": queue.queue_scheduled,
    "StartedScans": queue.start_queued,
    "StartedAudits": schedules.start_due,
    "LostAudits": schedules.end_lost,
    "ReopenedFindings": snoozes.reopen_due,
    "MatchedRepositories": match_advisories,
    "FinishedDeletions": cleanup.finish_deletions,
}


class StepsFailed(ExceptionGroup[Exception]):
    """Some steps failed. All the others ran."""


def sweep() -> dict[str, int]:
    """Runs every step and returns the number of entries that each finished. Raises StepsFailed after all steps ran.

    Each step gets an equal share of the remaining time, so unused time goes to later steps.
    Metrics: the number of entries that each step finished, under its name; FailedEntries, UnfinishedSteps, FailedSteps.
    """
    ends_at = clock.monotonic() + SWEEP_SECONDS
    runs: dict[str, SweepRun] = {}
    failures: list[Exception] = []
    for name, step in STEPS.items():
        now = clock.monotonic()
        run = runs[name] = SweepRun(name, now + (ends_at - now) / (len(STEPS) - len(runs)))
        try:
            step(run)
        except Exception as failure:  # noqa: BLE001 (the edge: one step must not keep the others from running)
            logger.error("step failed", extra={"step": name, **describe(failure)})
            failures.append(failure)
    finished = {name: run.finished for name, run in runs.items()}
    unfinished = [name for name, run in runs.items() if run.unfinished]
    counts = {
        **finished,
        "FailedEntries": sum(run.failed for run in runs.values()),
        "UnfinishedSteps": len(unfinished),
        "FailedSteps": len(failures),
    }
    for name, count in counts.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=count)
    logger.info("swept", extra={"counts": counts, "unfinished": unfinished})
    if failures:
        raise StepsFailed("sweep", failures)
    return finished
