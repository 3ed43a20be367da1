"""`assent-ops signing-key`: the steps of a rotation."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.session import Session

from controlplane.people.token_families import REFRESH_SECONDS
from controlplane.platform.core.settings import SigningSecret, read_signing_secret
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
    def test_a_rotation_adds_switches_and_drops_keys_in_the_expected_order(self, rotation, now):
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

    def test_the_next_rotation_drops_the_oldest_key(self, rotation, now):
        rotation.run("add")
        rotation.run("switch")
        now.advance(32 * DAY)
        current = rotation.secret.current
        rotation.run("add")
        assert rotation.secret.current == current
        assert rotation.secret.previous is None
        assert PLAIN not in rotation.text

    @pytest.mark.parametrize("verb", ["add", "drop"])
    def test_a_key_that_refresh_tokens_need_is_dropped_only_if_forced(self, rotation, now, verb):
        rotation.run("add")
        rotation.run("switch")
        now.advance(REFRESH_SECONDS + 3600)
        before = rotation.text
        refusal = rotation.run(verb)
        assert refusal.exit_code == 1
        assert "for up to 1 days. " in refusal.error["message"]
        assert "--early" in refusal.error["message"]
        assert rotation.text == before
        assert rotation.run(verb, "--early").exit_code == 0
        assert PLAIN not in rotation.text

    @each("steps", [["switch"], ["drop"], ["add", "add"], ["add", "drop"], ["add", "switch", "switch"]])
    def test_a_step_out_of_order_is_refused(self, rotation, steps):
        for step in steps[:-1]:
            rotation.run(step)
        before = rotation.text
        assert rotation.run(steps[-1]).exit_code == 4
        assert rotation.text == before

    def test_an_unreadable_secret_is_refused(self, rotation, ops):
        rotation._client.put_secret_value(SecretId=rotation._arn, SecretString="{broken")
        refusal = ops("signing-key", "show")
        assert refusal.exit_code == 1
        assert "broken" not in refusal.stderr


def test_a_stack_allows_no_step_before_the_last_one_is_deployed(run_without_table, stack, now):
    now.seconds = time.time()

    def shop(*words: str) -> Outcome:
        return run_without_table("signing-key", *words, "--stack", "shop", "--endpoint-url", stack.endpoint, "--json")

    assert shop("add").document["step"] == "added"
    assert "deployed" in shop("switch").error["message"]
    stack.updated, stack.status = time.time() + 1, "UPDATE_IN_PROGRESS"
    assert "UPDATE_IN_PROGRESS" in shop("switch").error["message"]
    stack.status = "UPDATE_COMPLETE"
    assert shop("switch").document["step"] == "switched"
    stack.updated = 0
    for verb in ("add", "drop"):
        assert "deployed" in shop(verb, "--early").error["message"]
    stack.updated = time.time() + 1
    assert shop("drop", "--early").document["step"] == "single"
