"""Wiring of `sweeper`, which is invoked once a minute and ignores the event."""

from typing import Any

from controlplane.core import deadline
from controlplane.core.observability import metrics
from sweeper.service import sweep


@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:  # noqa: ARG001 (Lambda's signature)
    """Returns the number of entries finished by each step. Raises an ExceptionGroup of failures after all steps ran."""
    with deadline.invocation(context):
        return sweep()
