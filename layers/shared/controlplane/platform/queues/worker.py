"""Turns a function that processes one message into the Lambda handler of its queue.

A processed message is deleted. A failed one is redelivered with exponential backoff, and so is a malformed one, because
a newer release may have sent it. A message that the work itself rejects, or that failed on its last receive, goes to
the dead-letter queue with the reason as an attribute. Only if a worker crashes does SQS move the message there, without
a reason. One whose organization holds its share of the workers waits: `queues.shares`. Logs and reasons contain error
types and locations, never content.
"""

import json
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from pydantic import TypeAdapter, ValidationError

from awsclient.errors import AwsError
from controlplane.platform.core import acting, deadline
from controlplane.platform.core.observability import describe, logger, metrics
from controlplane.platform.queues import messages, outbox, shares
from controlplane.platform.queues.messages import MAX_RECEIVES, Queue, Unreachable, is_newer, sender
from controlplane.platform.queues.shares import NoSlot

_last_delivery: ContextVar[bool] = ContextVar("last_delivery", default=False)
_FIRST_BACKOFF_SECONDS = 5
_LONGEST_BACKOFF_SECONDS = 900
# Backoff of a message from a newer release. The sum exceeds the 100 minutes of the slowest DeploymentStyle, while
# functions of both releases run.
_NEWER_RELEASE_BACKOFF_SECONDS = (60, 600, 1_800, 5_400)


class Postponed(Exception):
    """The message can't be processed yet and is redelivered after `seconds`.

    may_end_sooner: what it waits for usually ends long before, so it is redelivered with the usual backoff until then.
    """

    def __init__(self, seconds: int, reason: str, *, may_end_sooner: bool = False) -> None:
        self.may_end_sooner = may_end_sooner
        self.seconds = min(max(1, seconds), _LONGEST_BACKOFF_SECONDS)
        self.reason = reason


class Malformed(Exception):
    """The worker doesn't accept the message. is_newer: see `messages.is_newer`."""

    def __init__(self, error: ValidationError, *, is_newer: bool) -> None:
        # Only error types and locations: the values may be anything.
        places = sorted({f"{'.'.join(map(str, found['loc']))} {found['type']}" for found in error.errors()})
        self.reason = ("newer release: " if is_newer else "malformed: ") + "; ".join(places)[:500]
        self.is_newer = is_newer
        super().__init__(self.reason)


class Delayed(Exception):
    """The message leaves its queue, and the sweep sends it again after `seconds`, with all of its receives.

    For waits that nothing is wrong with, however often and however long.
    """

    def __init__(self, seconds: int, reason: str) -> None:
        self.seconds = max(1, seconds)
        self.reason = reason


class LeftToSweep(Exception):
    """The message isn't redelivered. If any work is left, the sweep sends another message for it.

    It isn't dead-lettered, because dead letters are handled manually and this case needs no manual action.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Rejected(Exception):
    """A retry can't succeed: the message goes to the dead-letter queue, which is handled manually."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def is_last_delivery() -> bool:
    """Returns whether the current message won't be redelivered."""
    return _last_delivery.get()


def create_worker[M](
    queue: Queue,
    accepted: TypeAdapter[M],
    process: Callable[[M], None],
    find_organization: Callable[[M], str | None] | None = None,
) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """Returns the Lambda handler of a queue's events. Metrics by service: Messages, FailedMessages, DeadLetters.

    process: processes one message. It may be called again with the same message, even while another call still runs.
    find_organization: returns the organization of a message whose fields don't say it.
    """

    def share_and_process(content: dict[str, Any], message: M) -> str:
        """Returns the outcome for the log."""

        def find() -> str | None:
            found = messages.organization_of(content)
            return find_organization(message) if found is None and find_organization else found

        try:
            with shares.hold(queue, find):
                process(message)
        except NoSlot as taken:
            messages.send(queue, content, taken.seconds)
            return "waiting"
        return "done"

    # By default, Powertools fails the whole invocation if every record failed. We report the records individually.
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)

    def process_record(record: SQSRecord) -> None:
        started = time.perf_counter()
        outcome = "failed"
        try:
            with acting.message(record.message_id):
                outcome = _process(queue, accepted, share_and_process, record)
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 1)
            logger.info("message", extra={**_log_fields(record), "outcome": outcome, "durationMs": milliseconds})
            metrics.add_metric(name="Messages", unit=MetricUnit.Count, value=1)

    @metrics.log_metrics
    def process_batch(event: dict[str, Any], context: Any) -> dict[str, Any]:
        with deadline.invocation(context):
            return dict(process_partial_response(event, process_record, processor, context))

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        # A queue sends no empty batch, which Powertools rejects. A deployment checks a new version with one.
        return process_batch(event, context) if event["Records"] else {"batchItemFailures": []}

    return handler


def _log_fields(record: SQSRecord) -> dict[str, Any]:
    return {"messageId": record.message_id, "receives": _receives(record)}


def _receives(record: SQSRecord) -> int:
    return int(record["attributes"]["ApproximateReceiveCount"])


def _process[M](
    queue: Queue, accepted: TypeAdapter[M], process: Callable[[dict[str, Any], M], str], record: SQSRecord
) -> str:
    """Returns the outcome for the log. Raises if the message must be redelivered."""
    _last_delivery.set(_receives(record) >= MAX_RECEIVES)
    try:
        message = _parse(accepted, record.body)
        return process(json.loads(record.body), message)
    except Rejected as failure:
        _move_to_dead_letters(queue, record, failure.reason)
        return "dead-lettered"
    except Delayed as delay:
        outbox.write(outbox.new_entry(queue.value, json.loads(record.body), delay.seconds))
        logger.info("message delayed", extra={**_log_fields(record), "reason": delay.reason, "seconds": delay.seconds})
        return "delayed"
    except LeftToSweep as failure:
        metrics.add_metric(name="FailedMessages", unit=MetricUnit.Count, value=1)
        logger.error("message left to the sweep", extra={**_log_fields(record), "reason": failure.reason})
        return "left to the sweep"
    except Exception as failure:  # outermost handler: any error leads to a retry or a dead letter with its reason
        metrics.add_metric(name="FailedMessages", unit=MetricUnit.Count, value=1)
        logger.error("message failed", extra={**_log_fields(record), "reason": _reason(failure), **describe(failure)})
        if is_last_delivery():
            _move_to_dead_letters(queue, record, _reason(failure))
            return "dead-lettered"
        _set_backoff(queue, record, failure)
        raise


def _parse[M](accepted: TypeAdapter[M], body: str) -> M:
    try:
        return accepted.validate_json(body)
    except ValidationError as error:
        raise Malformed(error, is_newer=is_newer(body, error)) from None


def _reason(failure: Exception) -> str:
    if isinstance(failure, Postponed | Malformed):
        return failure.reason
    described = describe(failure)
    return f"{described['errorType']} at {described['stack'][-1]}"


def _move_to_dead_letters(queue: Queue, record: SQSRecord, reason: str) -> None:
    """Sends the message to the dead-letter queue with the reason. If this raises Unreachable, it is redelivered."""
    try:
        sender.client.send_message(
            QueueUrl=queue.dead_letters_url,
            MessageBody=record.body,
            MessageAttributes={
                "reason": {"DataType": "String", "StringValue": reason},
                "messageId": {"DataType": "String", "StringValue": record.message_id},
            },
        )
    except AwsError as error:
        raise Unreachable(queue.value) from error
    metrics.add_metric(name="DeadLetters", unit=MetricUnit.Count, value=1)
    logger.error("message dead-lettered", extra={**_log_fields(record), "reason": reason})


def _set_backoff(queue: Queue, record: SQSRecord, failure: Exception) -> None:
    """Sets the backoff before the next delivery. If that fails, the queue's visibility timeout applies."""
    seconds = min(_FIRST_BACKOFF_SECONDS * 4 ** (_receives(record) - 1), _LONGEST_BACKOFF_SECONDS)
    if isinstance(failure, Postponed):
        seconds = min(seconds, failure.seconds) if failure.may_end_sooner else failure.seconds
    elif isinstance(failure, Malformed) and failure.is_newer:
        seconds = _NEWER_RELEASE_BACKOFF_SECONDS[_receives(record) - 1]
    try:
        sender.client.change_message_visibility(
            QueueUrl=queue.url, ReceiptHandle=record.receipt_handle, VisibilityTimeout=seconds
        )
    except (AwsError, Unreachable) as error:
        logger.warning("backoff not set", extra={**_log_fields(record), **describe(error)})
