"""Logs never contain a credential or personal data."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta

import pytest
from aws_lambda_powertools.metrics import MetricUnit
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.platform.core import observability, tokens
from controlplane.platform.core.observability import (
    _ScrubbingFormatter,
    count_request,
    describe,
    log_request,
    logger,
    scrub,
)
from controlplane.platform.http import app
from controlplane.platform.http.callers import RequestState
from tests.support.each import each
from tests.support.logs import captured_logs


@each(
    "secret",
    [
        "assent_0123456789abcdefghijABCDEFGHIJ012345",
        "assent_at_0123456789abcdefghijABCDEFGHIJ012345",
        "acme-consent_0123456789abcdefghijABCDEFGHIJ012345",
        "Bearer abcdefghijklmnop",
        "bearer   x.y.z",
        "ada.lovelace+tag@example.co.uk",
        "ÄDA@exämple.de",
    ],
)
def test_secrets_and_addresses_are_replaced_everywhere(secret):
    for text in (secret, f'{{"a":"{secret}"}}', f"before {secret}, after", f"key={secret}"):
        scrubbed = scrub(text)
        assert secret not in scrubbed
        assert secret.rpartition(" ")[2] not in scrubbed
        assert "[redacted]" in scrubbed


def test_ids_and_words_remain():
    for text in ("key_0123456789abcdefgh", "org_0123456789abcdef", "GET /v1/projects", "10.1.2.3"):
        assert scrub(text) == text


@given(st.text(st.sampled_from("aZ09_-. @:,BbEeARr\t\u0130é"), max_size=80))
@example("BEARER x")
@example("x_" + "a" * 36)
@example("a_bc_" + "0" * 40)
@example("_" * 36 + "a@b.cd")
def test_the_quick_check_finds_everything_the_expression_does(text):
    assert scrub(text) == observability._SECRET.sub("[redacted]", observability._EMAIL.sub("[redacted]", text))


def test_the_formatter_scrubs_every_field_of_a_line():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_ScrubbingFormatter())
    logger = logging.getLogger("scrub-test")
    logger.propagate = False
    logger.addHandler(handler)
    secret = tokens.mint("assent")
    logger.warning("token %s", secret, extra={"field": secret, "nested": {"mail": "ada@example.com"}})
    line = stream.getvalue()
    assert secret not in line
    assert "ada@example.com" not in line
    assert json.loads(line)["field"] == "[redacted]"


def test_an_exception_is_described_by_the_end_of_its_stack_without_its_message():
    def fail(depth: int) -> None:
        if depth == 0:
            raise RuntimeError("ada@example.com")
        fail(depth - 1)

    with pytest.raises(RuntimeError) as caught:
        fail(12)
    described = describe(caught.value)
    assert described["errorType"] == "RuntimeError"
    assert "ada" not in json.dumps(described)
    assert described["stack"][-1].startswith("test_observability.py:")
    assert [line.rpartition(" ")[2] for line in described["stack"]] == ["fail"] * 12


REQUEST = {"requestId": "r-1", "operation": "GET /v1/é", "method": "GET", "status": 200, "durationMs": 1.5}


class TestTheRequestLine:
    def written(self, fields: dict[str, object], *, as_usual: bool = False) -> dict[str, object]:
        with captured_logs() as lines:
            if as_usual:
                logger.info("request", extra=fields)
            else:
                log_request(fields)
        (line,) = lines.getvalue().splitlines()
        return json.loads(line)

    @pytest.mark.parametrize(
        "trace", [None, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"]
    )
    def test_the_request_line_equals_the_loggers(self, monkeypatch, trace):
        monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
        if trace:
            monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
        ours, usual = self.written(REQUEST), self.written(REQUEST, as_usual=True)
        texts = [str(line.pop("timestamp")) for line in (ours, usual)]
        # RFC 3339: Lambda takes a line with another time for one of level INFO.
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", text) for text in texts)
        times = [datetime.fromisoformat(text) for text in texts]
        assert abs(times[0] - times[1]) < timedelta(seconds=5)
        assert ours == usual
        assert {"level", "message", "service", *REQUEST} == set(ours) - {"xray_trace_id"}
        assert ("xray_trace_id" in ours) is (trace is not None)

    def test_the_request_line_is_scrubbed_says_how_long_it_took_and_honors_the_level(self):
        line = self.written({**REQUEST, "operation": f"GET /{tokens.mint('assent')} Bearer abc ada@example.com"})
        assert line["operation"] == "GET /[redacted] [redacted] [redacted]"
        with captured_logs() as lines:
            app._log(RequestState({}, "r-1"), "GET", 200, 0.12346)
        assert json.loads(lines.getvalue())["durationMs"] == 123.5
        logger.setLevel("WARNING")
        try:
            with captured_logs() as lines:
                log_request(REQUEST)
            assert not lines.getvalue()
        finally:
            logger.setLevel(observability.settings.log_level)


@each(("lambdas", "ours"), [("INFO", "WARNING"), ("INFO", "INFO"), ("DEBUG", "DEBUG"), (None, "INFO")])
def test_lambdas_level_replaces_neither_ours_nor_that_of_libraries(lambdas, ours):
    """Lambda's runtime sets the root's level before it imports the function, if it writes JSON."""
    program = (
        f"import logging; logging.getLogger().setLevel({lambdas or 'WARNING'!r})\n"
        "from controlplane.platform.core.observability import logger\n"
        "levels = logger.log_level, logging.getLogger('library').getEffectiveLevel()\n"
        "print(*map(logging.getLevelName, levels))"
    )
    given = {
        "LOG_LEVEL": ours,
        "PYTHONPATH": os.pathsep.join(sys.path),
        **({"AWS_LAMBDA_LOG_LEVEL": lambdas} if lambdas else {}),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [ours, "WARNING"]


@pytest.mark.parametrize("failed", [False, True])
def test_a_request_is_counted_as_powertools_would(failed, capsys):
    with captured_logs() as lines:
        count_request(failed=failed)
    (ours,) = map(json.loads, lines.getvalue().splitlines())
    observability.metrics.clear_metrics()  # another test may have added some outside of a handler

    @observability.metrics.log_metrics
    def handler(event: object, context: object) -> None:
        for name in ("Requests", "ServerErrors")[: 1 + failed]:
            observability.metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)

    handler({}, None)
    usual = json.loads(capsys.readouterr().out)
    assert abs(ours["_aws"].pop("Timestamp") - usual["_aws"].pop("Timestamp")) < 5_000
    assert ours == usual
