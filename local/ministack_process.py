"""Runs MiniStack until standard input closes: then, also when its parent was killed, it writes its state and ends.

It runs in MiniStack's own environment and so imports nothing of this project. Its argument is the file whose lock makes
it wait for the end of a predecessor that still writes. Unlike MiniStack alone, it says of which table a restored one is
a copy, as DynamoDB does.
"""

import fcntl
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any


def stop_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    lock = Path(sys.argv.pop()).open("w")  # noqa: SIM115 - held as long as the process lives
    fcntl.flock(lock, fcntl.LOCK_EX)

    from ministack.app import main
    from ministack.services import dynamodb

    restore, describe = dynamodb._restore_table_to_point_in_time, dynamodb._table_description

    def restore_and_remember(request: dict[str, Any]) -> Any:
        status, *answer = restore(request)
        if status == 200:
            source, target = (dynamodb._tables[request[f"{name}TableName"]] for name in ("Source", "Target"))
            target["RestoreSummary"] = {"SourceTableArn": source["TableArn"], "RestoreDateTime": int(time.time())}
        return status, *answer

    def describe_with_source(table: str) -> dict[str, Any]:
        summary = dynamodb._tables[table].get("RestoreSummary")
        described: dict[str, Any] = describe(table)
        return described | ({"RestoreSummary": summary} if summary else {})

    dynamodb._restore_table_to_point_in_time = restore_and_remember
    dynamodb._table_description = describe_with_source
    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    main()
