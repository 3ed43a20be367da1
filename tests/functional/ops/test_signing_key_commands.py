"""`assent-ops signing-key`: the steps of a rotation."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.session import Session

from controlplane.core.settings import SigningSecret, read_signing_secret
from controlplane.store.token_families import REFRESH_SECONDS
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops, Outcome
from tests.support.each import each

PLAIN = "a" * 64
DAY = 24 * 3600


class Rotation:
    """The secret, and the command line that rotates it."""

    def __init__(self, ops: Ops, client: Any, arn: str) -> None:
        self._ops, self._client, self._arn = ops, client, arn

    def run(self, *words: str) -> Outcome:
        outcome = self._ops("signing-key", *words)
        assert not any(key in outcome.stdout + outcome.stderr for key in self.secret.keys)
        return outcome

    @property
    def text(self) -> str:
        value: str = self._client.get_secret_value(SecretId=self._arn)["SecretString"]
        return value

    @property
    def secret(self) -> SigningSecret:
        return SigningSecret.model_validate(read_signing_secret(self.text))


@pytest.fixture
def rotation(ops: Ops, now: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rotation]:
    now.seconds = time.time()  # Secrets Manager reports when a version was written
    client = Session().create_client("secretsmanager", region_name="eu-central-1")
    arn = client.create_secret(Name="signing", SecretString=PLAIN)["ARN"]
    monkeypatch.setenv("SIGNING_SECRET_ARN", arn)
    yield Rotation(ops, client, arn)
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


class TestRotation:
    def test_a_rotation_adds_switches_and_drops_keys_in_the_expected_order(self, rotation: Rotation, now: FakeClock):
        assert rotation.run("show").document["step"] == "single"
        assert rotation.run("add").document["step"] == "added"
        added = rotation.secret
        assert added.current == PLAIN
        assert added.next is not None
        assert len(added.next) == 64
        assert rotation.run("switch").document["step"] == "switched"
        assert rotation.run("show").document["keys"] == 2
        assert rotation.secret == SigningSecret(current=added.next, previous=PLAIN)
        now.advance(32 * DAY)
        assert rotation.run("drop").document["keys"] == 1
        assert rotation.secret == SigningSecret(current=added.next)

    def test_the_next_rotation_drops_the_oldest_key(self, rotation: Rotation, now: FakeClock):
        rotation.run("add")
        rotation.run("switch")
        now.advance(32 * DAY)
        current = rotation.secret.current
        rotation.run("add")
        assert rotation.secret.current == current
        assert rotation.secret.previous is None
        assert PLAIN not in rotation.text

    @pytest.mark.parametrize("verb", ["add", "drop"])
    def test_a_key_that_refresh_tokens_need_is_dropped_only_if_forced(
        self, rotation: Rotation, now: FakeClock, verb: str
    ):
        rotation.run("add")
        rotation.run("switch")
        now.advance(REFRESH_SECONDS)
        before = rotation.text
        refusal = rotation.run(verb)
        assert refusal.exit_code == 1
        assert "--early" in refusal.error["message"]
        assert rotation.text == before
        assert rotation.run(verb, "--early").exit_code == 0
        assert PLAIN not in rotation.text

    @each("steps", [["switch"], ["drop"], ["add", "add"], ["add", "drop"], ["add", "switch", "switch"]])
    def test_a_step_out_of_order_is_refused(self, rotation: Rotation, steps: list[str]):
        for step in steps[:-1]:
            rotation.run(step)
        before = rotation.text
        assert rotation.run(steps[-1]).exit_code == 4
        assert rotation.text == before

    def test_an_unreadable_secret_is_refused(self, rotation: Rotation, ops: Ops):
        rotation._client.put_secret_value(SecretId=rotation._arn, SecretString="{broken")
        refusal = ops("signing-key", "show")
        assert refusal.exit_code == 1
        assert "broken" not in refusal.stderr

    def test_a_rotation_asks_which_secret_is_meant(self, ops: Ops):
        assert ops("signing-key", "show").exit_code == 2


class Aws(BaseHTTPRequestHandler):
    """A stack named shop, and its secret."""

    status, updated, written, secret = "UPDATE_COMPLETE", 0.0, 0.0, PLAIN

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        called = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        if called == "PutSecretValue":
            Aws.secret, Aws.written = json.loads(body)["SecretString"], time.time()
        if called:
            answer = json.dumps({"SecretString": Aws.secret, "CreatedDate": Aws.written})
        else:
            (action,) = parse_qs(body)["Action"]
            at = datetime.fromtimestamp(Aws.updated, UTC).isoformat()
            inner = {
                "DescribeStacks": f"<Stacks><member><StackName>shop</StackName><StackStatus>{Aws.status}</StackStatus>"
                f"<CreationTime>2026-01-01T00:00:00Z</CreationTime><LastUpdatedTime>{at}</LastUpdatedTime>"
                "</member></Stacks>",
                "DescribeStackResource": "<StackResourceDetail><PhysicalResourceId>shop-1</PhysicalResourceId>"
                "</StackResourceDetail>",
            }[action]
            answer = f"<{action}Response><{action}Result>{inner}</{action}Result></{action}Response>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Disables logging."""


class TestStack:
    @pytest.fixture
    def shop(self, run_without_table: Ops, now: FakeClock) -> Iterator[Ops]:
        now.seconds = time.time()
        with HTTPServer(("127.0.0.1", 0), Aws) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            options = ("--stack", "shop", "--endpoint-url", f"http://127.0.0.1:{server.server_port}", "--json")
            yield lambda *words: run_without_table("signing-key", *words, *options)
            server.shutdown()
            thread.join()

    def test_a_stack_allows_no_step_before_the_last_one_is_deployed(self, shop: Ops):
        assert shop("add").document["step"] == "added"
        refusal = shop("switch")
        assert refusal.exit_code == 1
        assert "deployed" in refusal.error["message"]
        Aws.updated, Aws.status = time.time() + 1, "UPDATE_IN_PROGRESS"
        assert "UPDATE_IN_PROGRESS" in shop("switch").error["message"]
        Aws.status = "UPDATE_COMPLETE"
        assert shop("switch").document["step"] == "switched"
        Aws.updated = 0
        for verb in ("add", "drop"):
            assert "deployed" in shop(verb, "--early").error["message"]
        Aws.updated = time.time() + 1
        assert shop("drop", "--early").document["step"] == "single"
