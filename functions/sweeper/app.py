"""Wiring of `sweeper`, which is invoked once a minute."""

from typing import Any

from controlplane.platform.core import deadline
from controlplane.platform.core.observability import metrics
from sweeper.service import sweep


@metrics.log_metrics
def _sweep(event: dict[str, Any], context: Any) -> dict[str, int]:  # noqa: ARG001 (Lambda's signature)
    with deadline.invocation(context):
        return sweep()


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Returns the number of entries finished by each step. Raises an ExceptionGroup of failures after all steps ran.

    An empty batch, with which a deployment checks a new version, runs no step. Any other event runs all.
    """
    return {} if event.get("Records") == [] else _sweep(event, context)
