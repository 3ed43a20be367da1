"""A local run's memory, and its environment, in which nothing is left that could direct a call to AWS."""

import json

from local import checkout, environment
from local.checkout import Memory

RESOURCES = {"Table": "assent-Table-1", "UserPool": "eu-central-1_Ab3", "UserPoolClient": "client1"}
LOCAL, CLOUD = "http://127.0.0.1:3000", "http://127.0.0.1:4566"


def variables() -> dict[str, str]:
    return environment.function_environment(Memory(4566), LOCAL, CLOUD, RESOURCES, "secret")


def test_no_other_aws_variable_remains_and_people_sign_in_at_the_local_address():
    target = {"AWS_PROFILE": "production", "AWS_ENDPOINT_URL_DYNAMODB": "https://elsewhere.example", "HOME": "/home/me"}
    made = variables()
    environment.apply(made, target)
    assert target == {"HOME": "/home/me", **made}
    expected = {
        "AWS_ENDPOINT_URL": CLOUD,
        "TABLE_NAME": "assent-Table-1",
        "ORGANIZATIONS_PER_PERSON": "1000",
        "REJECTED_CREDENTIALS_PER_MINUTE": "1000",
        "SIGN_IN_ISSUER": "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab3",
        "SIGN_IN_METADATA_URL": "http://127.0.0.1:3000/sign-in-stand-in/.well-known/openid-configuration",
        "SIGN_IN_CLIENT_ID": "client1",
    }
    assert {name: made[name] for name in expected} == expected


def test_the_front_door_has_a_new_secret_for_each_run_unless_it_is_off(monkeypatch):
    monkeypatch.delenv("FRONT_DOOR", raising=False)
    first, second = (variables()["FRONT_DOOR_SECRET"] for _ in range(2))
    assert "" != first != second
    monkeypatch.setenv("FRONT_DOOR", "off")
    assert "FRONT_DOOR_SECRET" not in variables()


def test_what_another_version_of_the_checkout_remembered_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "_MEMORY", tmp_path / "stack.json")
    stored = {"ministack_port": checkout.free_port(), "signing_secret": "gone", "deployed": "digest"}
    (tmp_path / "stack.json").write_text(json.dumps(stored))
    assert checkout.load_memory() == Memory(stored["ministack_port"], "digest")
