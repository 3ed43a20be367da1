"""Signatures equal botocore's, byte for byte."""

import string
from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from awsclient.credentials import Credentials, Scope, _signing_key, authorization, canonical_path

RESERVED = {*botocore.auth.SIGNED_HEADERS_BLACKLIST, "authorization", "date", "host", "x-amz-content-sha256"}

line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=30)
name = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=15)
ordinary = name.filter(lambda text: text not in RESERVED and not text.startswith("x-amz-"))
credentials = st.builds(
    Credentials,
    st.text(string.ascii_uppercase, min_size=1, max_size=20),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    st.none() | line.filter(str.strip),
)
# A URL is split at ? and #, and its parser removes some characters.
segment = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="?#[]@;"), max_size=20)
path = st.lists(segment | st.sampled_from(("..", ".", "", "%20", "a b", "~")), max_size=4).map("/".join)


@settings(max_examples=400, deadline=None, database=None)
@given(
    moment=st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31)),  # noqa: DTZ001 (botocore's have no zone)
    who=credentials,
    way=path.map("/".__add__),
    headers=st.dictionaries(ordinary, line, max_size=5),
    body=st.binary(max_size=100) | line.map(str.encode),
    scope=st.sampled_from((Scope("eu-central-1", "dynamodb"), Scope("cn-north-1", "sqs"))),
    host=st.sampled_from(("dynamodb.eu-central-1.amazonaws.com", "127.0.0.1:4566", "xn--bcher-kva.example")),
)
def test_signatures_equal_botocores(*, moment, who, way, headers, body, scope, host):
    request = AWSRequest("POST", f"https://{host}{way}", dict(headers), body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: moment.replace(tzinfo=UTC))
        SigV4Auth(BotocoreCredentials(*who), scope.service, scope.region).add_auth(request)
    ours = {**headers, "host": host, "x-amz-date": moment.strftime("%Y%m%dT%H%M%SZ")}
    if who.token:
        ours["x-amz-security-token"] = who.token
    assert authorization(who, scope, canonical_path(way), ours, body) == request.headers["Authorization"]


def test_the_key_of_awss_own_documentation_is_reproduced():
    """The example of the IAM User Guide, with another service: its key derivation is given there."""
    derived = _signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", Scope("us-east-1", "iam")).hex()
    assert derived == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_a_path_is_signed_without_detours():
    assert canonical_path("/a//b/./c/../../d/") == "/a/d/"
    assert canonical_path("/../") == "/"


def test_credentials_are_never_printed():
    assert "secret" not in repr(Credentials("id", "secret", "token of a session"))
