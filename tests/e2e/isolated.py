"""Runs one built function alone: `python -I -S isolated.py LAYER FUNCTION HANDLER EVENTS ANSWERS`.

With -I and -S nothing but the standard library is importable. The two folders are added as Lambda adds them, so a
module that only the development environment has is not found here, as it would not be there.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any


class Context:
    function_name = "isolated"
    function_version = "1"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:isolated"
    aws_request_id = "00000000-0000-0000-0000-000000000000"


def main(layer: str, function: str, handler: str, events: str, answers: str) -> None:
    sys.path[:0] = [function, f"{layer}/python"]
    module, _, name = handler.rpartition(".")
    handle = getattr(importlib.import_module(module), name)
    given: list[Any] = json.loads(Path(events).read_text(encoding="utf-8"))
    answered = [handle(event, Context()) for event in given]
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    loaded = [file for file in files if file]
    Path(answers).write_text(json.dumps({"answers": answered, "loaded": loaded}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
