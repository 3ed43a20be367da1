"""The rules of `sweeper`: what is finished in the place of a process that died, and in which order.

Every step may run at any time, twice, and next to the process it takes for dead: the writes of the store decide. What
merely expires needs no step: each reader of an invitation, a device request, a token or a kept response compares it
with the clock, and TTL removes it some days later.
"""

from aws_lambda_powertools.metrics import MetricUnit

from controlplane import clock, issue_messages, queues, scan_messages
from controlplane.observability import describe, logger, metrics
from controlplane.store import cleanup
from controlplane.store.sweep_runs import Step, SweepRun

# The function's timeout in template.yaml is longer, so that the entry at which the time is up can still end.
SWEEP_SECONDS = 38
# By the name under which its count is logged and measured.
STEPS: dict[str, Step] = {
    "ResentMessages": queues.resend,
    "ResumedIssueAttempts": issue_messages.announce_overdue,
    "RecoveredScans": scan_messages.recover_scans,
    "FinishedDeletions": cleanup.finish_deletions,
}


class StepsFailed(ExceptionGroup[Exception]):
    """Some steps failed. The others ran."""


def sweep() -> dict[str, int]:
    """Runs every step, and returns how many entries each has finished. Raises StepsFailed, after all of them ran.

    Each step gets an equal share of the time that is left, so time that one doesn't need goes to the later ones.
    Metrics: what each step finished, under its name; FailedEntries, UnfinishedSteps and FailedSteps.
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
