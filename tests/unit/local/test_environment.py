"""A local run leaves nothing in the environment that could direct a call to AWS."""

from local import environment
from local.checkout import Memory

RESOURCES = {"Table": "assent-Table-1", "UserPool": "eu-central-1_Ab3", "UserPoolClient": "client1"}


class TestApply:
    def test_no_other_aws_variable_remains(self):
        target = {
            "AWS_PROFILE": "production",
            "AWS_ENDPOINT_URL_DYNAMODB": "https://elsewhere.example",
            "HOME": "/home/me",
        }
        variables = environment.function_environment(
            Memory(4566), "http://127.0.0.1:3000", "http://127.0.0.1:4566", RESOURCES, "secret"
        )
        environment.apply(variables, target)
        assert target == {"HOME": "/home/me", **variables}
        assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
        assert variables["TABLE_NAME"] == "assent-Table-1"
        assert variables["ORGANIZATIONS_PER_PERSON"] == "1000"

    def test_people_sign_in_with_the_pools_own_name_at_the_local_address(self):
        variables = environment.function_environment(
            Memory(4566), "http://127.0.0.1:3000", "http://127.0.0.1:4566", RESOURCES, "secret"
        )
        assert variables["SIGN_IN_ISSUER"] == "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab3"
        assert variables["SIGN_IN_METADATA_URL"] == (
            "http://127.0.0.1:4566/eu-central-1_Ab3/.well-known/openid-configuration"
        )
        assert variables["SIGN_IN_CLIENT_ID"] == "client1"

    def test_test_clients_are_allowed_more_failures(self):
        variables = environment.function_environment(
            Memory(4566), "http://127.0.0.1:3000", "http://127.0.0.1:4566", RESOURCES, "secret"
        )
        assert variables["REJECTED_CREDENTIALS_PER_MINUTE"] == "1000"

    def test_the_front_door_has_a_new_secret_for_each_run_unless_it_is_off(self, monkeypatch):
        def secret() -> str | None:
            return environment.function_environment(
                Memory(4566), "http://127.0.0.1:3000", "http://127.0.0.1:4566", RESOURCES, "secret"
            ).get("FRONT_DOOR_SECRET")

        monkeypatch.delenv("FRONT_DOOR", raising=False)
        first = secret()
        assert first
        assert secret() not in {first, None}
        monkeypatch.setenv("FRONT_DOOR", "off")
        assert secret() is None
