"""Wiring of `sweeper`: one call a minute, of which nothing in the event matters."""

from typing import Any

from controlplane.observability import metrics
from sweeper.service import sweep


@metrics.log_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:  # noqa: ARG001 (Lambda's signature)
    """How much each step finished, by its name. Raises an ExceptionGroup of what steps failed of, after all ran."""
    return sweep()
