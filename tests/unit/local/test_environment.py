"""A local run leaves nothing in the environment that could lead a call to AWS."""

from local import environment
from local.checkout import Memory


class TestApply:
    def test_leaves_no_other_aws_variable(self):
        target = {
            "AWS_PROFILE": "production",
            "AWS_ENDPOINT_URL_DYNAMODB": "https://elsewhere.example",
            "HOME": "/home/me",
        }
        variables = environment.function_environment(
            Memory(4566, "secret"), "http://127.0.0.1:3000", "http://127.0.0.1:4566", {"Table": "assent-Table-1"}
        )
        environment.apply(variables, target)
        assert target == {"HOME": "/home/me", **variables}
        assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
        assert variables["TABLE_NAME"] == "assent-Table-1"
