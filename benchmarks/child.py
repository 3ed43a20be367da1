"""The measured process: imports one handler as Lambda would, handles one event, then the requested number of others.

Standard input has a line of JSON that describes the run, then a number of invocations (or an event) per line.
Standard output gets a line of JSON with the cold start's phases and the first answer, then "<elapsed ns> <cpu ns>" per
line (or the answer). The handler's own output is discarded, or goes to the file BENCHMARK_OUTPUT. Started with
`-I -S`, so that only the given folders are importable.
"""

# Imports that the Lambda runtime makes before it loads the handler don't count as a cold start.
import base64  # noqa: F401
import concurrent.futures  # noqa: F401
import decimal  # noqa: F401
import http.client  # noqa: F401
import importlib
import json
import logging  # noqa: F401
import os
import pathlib
import sys
import time
import traceback  # noqa: F401
import urllib.parse  # noqa: F401


class Context:
    """The second argument that the Lambda runtime passes to a handler."""

    function_name = "benchmark"
    function_version = "$LATEST"
    memory_limit_in_mb = "1769"
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:benchmark"
    aws_request_id = "00000000-1111-4222-8333-444444444444"
    log_group_name = "/aws/lambda/benchmark"
    log_stream_name = "2026/01/01/[$LATEST]0"
    identity = None
    client_context = None

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 29_000


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.environ.get("BENCHMARK_OUTPUT", os.devnull), os.O_WRONLY), 1)
    job = json.loads(sys.stdin.readline())
    sys.path[:0] = job["folders"]
    event, context = job["event"], Context()
    if recordings := os.environ.get("BENCHMARK_SOCKETLESS"):
        sys.path.insert(0, str(pathlib.Path(__file__).parent))
        importlib.import_module("socketless").install(pathlib.Path(recordings))
        del sys.path[0]

    cpu, begin = time.process_time_ns(), time.monotonic_ns()
    handler = getattr(importlib.import_module(job["module"]), "handler")  # noqa: B009 (the name is Lambda's)
    imported = time.monotonic_ns()
    answer = handler(event, context)
    answered = time.monotonic_ns()
    used = time.process_time_ns() - cpu

    report = {"init_ns": imported - begin, "first_ns": answered - imported, "cpu_ns": used, "answer": answer}
    if job.get("modules"):
        report["modules"] = sorted(sys.modules)
    answers.write(json.dumps(report) + "\n")
    for line in sys.stdin:
        if line.startswith("{"):
            event = json.loads(line)
            answers.write(json.dumps(handler(event, context)) + "\n")
            continue
        turns = range(int(line))
        cpu, begin = time.process_time_ns(), time.monotonic_ns()
        for _ in turns:
            handler(event, context)
        elapsed, used = time.monotonic_ns() - begin, time.process_time_ns() - cpu
        answers.write(f"{elapsed} {used}\n")
    os._exit(0)  # an interpreter's tear-down is part of no request


main()
