"""`assent-ops signing-key`: the steps of a rotation."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.session import Session

from controlplane.settings import SigningSecret, read_signing_secret
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops, Outcome

PLAIN = "a" * 64
DAY = 24 * 3600


class Rotation:
    """The secret, and the command line over it."""

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
    now.seconds = time.time()  # Secrets Manager says when a version was written
    client = Session().create_client("secretsmanager", region_name="eu-central-1")
    arn = client.create_secret(Name="signing", SecretString=PLAIN)["ARN"]
    monkeypatch.setenv("SIGNING_SECRET_ARN", arn)
    yield Rotation(ops, client, arn)
    client.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


class TestRotation:
    def test_adds_switches_and_drops_with_the_keys_in_the_order_that_the_functions_expect(
        self, rotation: Rotation, now: FakeClock
    ):
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

    def test_of_the_next_time_drops_the_oldest_key(self, rotation: Rotation, now: FakeClock):
        rotation.run("add")
        rotation.run("switch")
        now.advance(32 * DAY)
        current = rotation.secret.current
        rotation.run("add")
        assert rotation.secret.current == current
        assert rotation.secret.previous is None
        assert PLAIN not in rotation.text

    @pytest.mark.parametrize("verb", ["add", "drop"])
    def test_does_not_drop_a_key_that_refresh_tokens_need_unless_it_is_told_to(self, rotation: Rotation, verb: str):
        rotation.run("add")
        rotation.run("switch")
        before = rotation.text
        refusal = rotation.run(verb)
        assert refusal.exit_code == 1
        assert "--early" in refusal.error["message"]
        assert rotation.text == before
        assert rotation.run(verb, "--early").exit_code == 0
        assert PLAIN not in rotation.text

    @pytest.mark.parametrize(
        "steps", [["switch"], ["drop"], ["add", "add"], ["add", "drop"], ["add", "switch", "switch"]]
    )
    def test_refuses_a_step_out_of_order(self, rotation: Rotation, steps: list[str]):
        for step in steps[:-1]:
            rotation.run(step)
        before = rotation.text
        assert rotation.run(steps[-1]).exit_code == 4
        assert rotation.text == before

    def test_refuses_a_secret_that_it_cannot_read(self, rotation: Rotation, ops: Ops):
        rotation._client.put_secret_value(SecretId=rotation._arn, SecretString="{broken")
        refusal = ops("signing-key", "show")
        assert refusal.exit_code == 1
        assert "broken" not in refusal.stderr

    def test_asks_which_secret_is_meant(self, ops: Ops):
        assert ops("signing-key", "show").exit_code == 2
