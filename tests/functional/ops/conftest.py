"""The operator's command line on each test's table, and the parts of AWS that it calls."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO, TextIOWrapper
from threading import Thread
from typing import Any
from unittest import mock
from urllib.parse import parse_qs

import pytest
from botocore.session import Session
from moto import mock_aws
from typer.main import get_command

from controlplane.platform.table.table import table
from ops.program import main
from tests.functional.ops.full_account import FullAccount
from tests.support.api import Api
from tests.support.world import World


@dataclass
class Outcome:
    """A command's result. Each accessor also checks that the output went to the right stream."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """Returns the JSON document that a successful --json command printed as its only output."""
        assert self.exit_code == 0, self.stderr
        assert not self.stderr
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """Returns the error that a --json command failed with."""
        assert self.exit_code != 0
        assert not self.stdout
        error = json.loads(self.stderr)["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        return error


Ops = Callable[..., Outcome]


@pytest.fixture(scope="session", autouse=True)
def _one_command() -> Iterator[None]:
    """Makes the command of the app once, which otherwise each run does, and takes longer than most runs."""
    with mock.patch("typer.main.get_command", cache(get_command)):
        yield


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    """Provides the queues that commands send to. The table is the engine's."""
    with mock_aws():
        yield


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Restores the variables and the table connection that a command sets."""
    name, client = table.name, table.client
    with mock.patch.dict(os.environ):
        yield
    table.name, table.client = name, client


@pytest.fixture
def run_without_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ops:
    """Runs a command line as given, without naming the test's table."""

    def run(*words: str, text: str = "") -> Outcome:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))
            exit_code = main(words)
        return Outcome(exit_code, *capsys.readouterr())

    return run


@pytest.fixture
def ops_text(run_without_table: Ops) -> Ops:
    """Runs a command as a person does. `text` is typed into a stdin that isn't a terminal."""
    return lambda *words, **options: run_without_table(*words[:2], "--table", table.name, *words[2:], **options)


@pytest.fixture
def ops(ops_text: Ops) -> Ops:
    """Runs a command as a program does, with --json."""
    return lambda *words, **options: ops_text(*words[:2], "--json", *words[2:], **options)


class Queue:
    """A queue of the test's own."""

    def __init__(self, name: str) -> None:
        self.client = Session().create_client("sqs", region_name="eu-central-1")
        self.url = self.client.create_queue(QueueName=name)["QueueUrl"]

    def send(self, body: str, **attributes: Any) -> str:
        return str(
            self.client.send_message(QueueUrl=self.url, MessageBody=body, MessageAttributes=attributes)["MessageId"]
        )

    def waiting(self) -> list[dict[str, Any]]:
        """Returns up to ten of the messages that can be received now, by their bodies."""
        answer = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageAttributeNames=["All"]
        )
        return sorted(answer.get("Messages", []), key=lambda message: message["Body"])

    def bodies(self) -> list[str]:
        return [message["Body"] for message in self.waiting()]


@pytest.fixture
def make_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Queue]]:
    """Returns a function that makes the queue to which a variable leads."""
    made: list[Queue] = []

    def make(variable: str) -> Queue:
        made.append(Queue(variable))
        monkeypatch.setenv(variable, made[-1].url)
        return made[-1]

    yield make
    for queue in made:
        queue.client.delete_queue(QueueUrl=queue.url)


@dataclass
class Stack:
    """A stack named shop, as CloudFormation describes it, and its signing secret."""

    parameters: dict[str, str] = field(
        default_factory=lambda: {"ServiceBrand": "consentful", "GithubAppId": "77", "Other": "x"}
    )
    status: str = "UPDATE_COMPLETE"
    updated: float = 0.0
    secret: str = "a" * 64
    written: float = 0.0
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, target: str, body: str) -> tuple[int, str]:
        """Answers a call of Secrets Manager, which names a target, or of CloudFormation."""
        if target == "PutSecretValue":
            self.secret, self.written = json.loads(body)["SecretString"], time.time()
        if target:
            return 200, json.dumps({"SecretString": self.secret, "CreatedDate": self.written})
        form = {name: values[0] for name, values in parse_qs(body).items()}
        if form["StackName"] != "shop" or form.get("LogicalResourceId") == "Nothing":
            return 400, "<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>"
        if form["Action"] == "DescribeStackResource":
            physical = f"<PhysicalResourceId>shop-{form['LogicalResourceId']}-1</PhysicalResourceId>"
            inner = f"<StackResourceDetail>{physical}</StackResourceDetail>"
        else:
            inner = f"<Stacks><member>{self._described()}</member></Stacks>"
        return (
            200,
            f"<{form['Action']}Response><{form['Action']}Result>{inner}</{form['Action']}Result></{form['Action']}Response>",
        )

    def _described(self) -> str:
        parameters = "".join(
            f"<member><ParameterKey>{name}</ParameterKey><ParameterValue>{value}</ParameterValue></member>"
            for name, value in self.parameters.items()
        )
        return (
            f"<StackName>shop</StackName><StackStatus>{self.status}</StackStatus><Parameters>{parameters}</Parameters>"
            f"<CreationTime>2026-01-01T00:00:00Z</CreationTime>"
            f"<LastUpdatedTime>{datetime.fromtimestamp(self.updated, UTC).isoformat()}</LastUpdatedTime>"
            "<Outputs><member><OutputKey>GithubAppKeyArn</OutputKey><OutputValue>arn:key</OutputValue></member></Outputs>"
        )


@pytest.fixture
def stack() -> Iterator[Stack]:
    served = Stack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, text = served.answer(self.headers.get("X-Amz-Target", "").rpartition(".")[2], body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Disables logging."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        served.port = server.server_port
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def full_account(world: World, api: Api) -> FullAccount:
    return FullAccount(world, api)
