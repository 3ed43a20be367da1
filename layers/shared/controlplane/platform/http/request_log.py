"""The log line and the metric of a request."""

from controlplane.platform.core.observability import count_limited, log_request
from controlplane.platform.http.request_state import RequestState

# Only logged: the client closed the connection before it received the response.
CLIENT_CLOSED_REQUEST = 499


def log(state: RequestState, method: str, status: int, seconds: float) -> None:
    """Writes the request's log line, and a metric if the request was rate limited."""
    log_request(
        {
            "requestId": state.request_id,
            "operation": state.operation,
            "method": method,
            "status": status,
            "durationMs": round(seconds * 1000, 1),
            **state.caller.log_fields,
        }
    )
    if status == 429:
        count_limited(state.caller.rate_group)
