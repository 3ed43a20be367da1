"""Signatures equal botocore's, byte for byte."""

import string
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import product

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from awsclient.signing import Credentials, Scope, authorization, canonical_path

EXAMPLES, REQUESTS_PER_EXAMPLE = 45, 128
RESERVED = {*botocore.auth.SIGNED_HEADERS_BLACKLIST, "authorization", "date", "host", "x-amz-content-sha256"}

line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=30)
name = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=15)
ordinary = name.filter(lambda text: text not in RESERVED and not text.startswith("x-amz-"))
headers = st.dictionaries(ordinary, line, max_size=5)
key = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
credentials = st.builds(
    Credentials, st.text(string.ascii_uppercase, min_size=1, max_size=20), key, st.none() | line.filter(str.strip)
)
# A URL is split at ? and #, and its parser removes some characters.
path = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="?#[]@;"), max_size=20)
paths = st.lists(st.one_of(path, st.sampled_from(("..", ".", "", "%20", "a b", "~"))), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
times = st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31))  # noqa: DTZ001 (botocore's have no zone)


def twice[T](strategy: st.SearchStrategy[T], times: int = 2) -> st.SearchStrategy[list[T]]:
    return st.lists(strategy, min_size=times, max_size=times)


def sign_with_botocore(time: datetime, who: Credentials, scope: Scope, request: AWSRequest) -> Mapping[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: time.replace(tzinfo=UTC))
        SigV4Auth(BotocoreCredentials(*who), scope.service, scope.region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(
    moments=twice(times),
    people=twice(credentials),
    ways=twice(paths),
    several=twice(headers, 4),
    bodies=twice(st.binary(max_size=100) | line.map(str.encode), 4),
    scope=st.sampled_from((("eu-central-1", "dynamodb"), ("cn-north-1", "sqs"), ("us-gov-west-1", "secretsmanager"))),
    host=st.sampled_from(("dynamodb.eu-central-1.amazonaws.com", "127.0.0.1:4566", "xn--bcher-kva.example")),
)
def test_signatures_equal_botocores_over_5000_requests(*, moments, people, ways, several, bodies, scope, host):
    compared = 0
    for time, who, way, extra, body in product(moments, people, ways, several, bodies):
        theirs = sign_with_botocore(
            time, who, Scope(*scope), AWSRequest("POST", f"https://{host}{way}", dict(extra), body)
        )
        timestamp = time.strftime("%Y%m%dT%H%M%SZ")
        ours = {**extra, "host": host, "x-amz-date": timestamp}
        if who.token:
            ours["x-amz-security-token"] = who.token
        signed = authorization(who, Scope(*scope), canonical_path(way), ours, body)
        assert signed == theirs["authorization"]
        assert timestamp == theirs["x-amz-date"]
        compared += 1
    assert compared == REQUESTS_PER_EXAMPLE
    assert EXAMPLES * REQUESTS_PER_EXAMPLE >= 5_000


def test_the_signature_of_awss_own_documentation_is_reproduced():
    """The example of the IAM User Guide, with another service: its key derivation is given there."""
    from awsclient.signing import _signing_key

    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    derived = _signing_key(secret, "20150830", Scope("us-east-1", "iam")).hex()
    assert derived == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_a_path_is_signed_without_detours():
    assert canonical_path("/a//b/./c/../../d/") == "/a/d/"
    assert canonical_path("/../") == "/"


def test_credentials_are_never_printed():
    assert "secret" not in repr(Credentials("id", "secret", "token of a session"))
