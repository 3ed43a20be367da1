"""Runs one built function in the Lambda runtime: AWS's interface client, and an emulator of the Lambda service.

awslambdaric imports the handler and calls it, as it does on AWS; the emulator is part of SAM CLI and takes invocations
over HTTP. The function can import only its own folder, its layers, the runtime, and the standard library: a module that
exists only in the development environment is missing here, as it is on AWS.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local.checkout import free_port
from local.template import load_template
from tests.e2e.deployment import ARCHITECTURE, BUILD, REGION, ROOT
from tests.support.engines import stop, wait_until_listening
from tests.support.template import layers_of

_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_RUNTIME = ROOT / ".tools" / "lambda" / _PACKAGES
_EMULATOR = ROOT / ".tools" / "sam" / _PACKAGES / "samcli" / "local" / "rapid" / f"aws-lambda-rie-{ARCHITECTURE}"
_INVOCATION = "/2015-03-31/functions/function/invocations"


@dataclass
class Runtime:
    """A running function that waits for its next invocation."""

    port: int
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def invoke(self, event: Any) -> Any:
        """Invokes the handler. Returns its result, or Lambda's report of its error (`errorType`)."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", _INVOCATION, json.dumps(event))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        assert response.status == 200, f"{text!r}\n{self.log}"
        return json.loads(text)


@contextmanager
def running_function(logical_id: str, properties: Mapping[str, Any], variables: Mapping[str, str]) -> Iterator[Runtime]:
    """Runs the built function with these variables on a free local port until the block ends."""
    folder = BUILD / logical_id
    layers = [BUILD / layer / "python" for layer in layers_of({"Properties": properties})]
    declared = {**load_template()["Globals"]["Function"], **properties}
    interpreter = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    port, api_port = free_port(), free_port()
    with TemporaryDirectory() as scratch:
        log_file = Path(scratch) / "log"
        with log_file.open("w") as log:
            process = subprocess.Popen(
                [
                    _EMULATOR,
                    *("--log-level", "error"),
                    *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
                    *("--runtime-api-address", f"127.0.0.1:{api_port}"),
                    # -S: no packages of the interpreter's own.
                    *(interpreter, "-S", "-B", "-m", "awslambdaric", declared["Handler"]),
                ],
                cwd=folder,
                env={
                    "PATH": "/usr/local/bin:/usr/bin:/bin",
                    "PYTHONPATH": ":".join(map(str, (folder, *layers, _RUNTIME))),
                    "LAMBDA_TASK_ROOT": str(folder),
                    "TMPDIR": scratch,
                    "AWS_LAMBDA_FUNCTION_NAME": logical_id,
                    "AWS_LAMBDA_FUNCTION_TIMEOUT": str(declared["Timeout"]),
                    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(declared["MemorySize"]),
                    "AWS_REGION": REGION,
                    "AWS_DEFAULT_REGION": REGION,
                    **variables,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until_listening(process, port)
            yield Runtime(port, log_file)
        finally:
            # This ends the function's process too.
            stop(process)
