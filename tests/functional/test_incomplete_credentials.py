"""401 for a truncated or mistyped credential: the response says so, but nothing about which credentials exist."""

from controlplane.people import sessions
from controlplane.platform.core.errors import IncompleteCredential
from tests.support.calls import recorded_calls


def _wrong_forms(secret: str) -> list[str]:
    """Returns the secret truncated, mistyped, and with what is often copied along."""
    other = "A" if secret[-8] != "A" else "B"
    return [
        secret[:-1],
        secret[:-20],
        secret[:-8] + other + secret[-7:],
        secret + "x",
        f'{secret}"',
    ]


def test_an_incomplete_credential_gets_a_401_that_says_so_without_a_call_to_the_table(api, world):
    company = world.company()
    secrets = [company.owner.token, world.key(company), sessions.create(company.owner.user_id)]
    with recorded_calls() as calls:
        for secret in secrets:
            for wrong in _wrong_forms(secret):
                reply = api.get("/v1/me", wrong)
                assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
                assert reply.error["message"] == IncompleteCredential.message
                assert reply.error["details"] == {"reason": "incomplete_credential"}
                assert reply.challenge == IncompleteCredential.challenge
                assert wrong not in reply.text
    assert list(calls) == []
