"""EventBridge on this machine: a thread per schedule calls the function that the template names, at its rate."""

import importlib
import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from local.template import load_template

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
_logger = logging.getLogger("local.schedules")

type Handler = Callable[[dict[str, Any], Any], Any]


class Schedule(NamedTuple):
    """A function, and the seconds between its calls."""

    function: str
    seconds: int


def schedules(template: dict[str, Any]) -> list[Schedule]:
    """Returns the schedules of the template's functions. Raises ValueError if one isn't a rate."""
    found = []
    for entry in template["Resources"].values():
        if entry["Type"] != "AWS::Serverless::Function":
            continue
        for event in entry["Properties"].get("Events", {}).values():
            if event["Type"] == "Schedule":
                expression = event["Properties"]["Schedule"]
                rate = _RATE.fullmatch(expression)
                if rate is None:
                    raise ValueError(f"{expression} is no rate")
                folder = Path(entry["Properties"]["CodeUri"]).name
                found.append(Schedule(folder, int(rate[1]) * _UNIT_SECONDS[rate[2]]))
    return found


def start_schedules() -> None:
    """Starts a thread for each schedule. They end with the process."""
    for schedule in schedules(load_template()):
        handler = importlib.import_module(f"{schedule.function}.app").handler
        threading.Thread(target=_repeat, args=(schedule, handler), name=schedule.function, daemon=True).start()


def _repeat(schedule: Schedule, handler: Handler) -> None:
    while True:
        time.sleep(schedule.seconds)
        call_once(schedule, handler)


def call_once(schedule: Schedule, handler: Handler) -> None:
    """Calls the function once. As on AWS, a failure doesn't affect the next call."""
    try:
        handler({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}, None)
    except Exception:
        _logger.exception("%s failed", schedule.function)
