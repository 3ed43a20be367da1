"""The receiver of `make run` answers as chosen, over real connections, and its page shows what arrived."""

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest
import uvicorn

from controlplane.platform.core import clock, webhook_urls
from controlplane.platform.core.settings import settings
from local import webhook_receiver
from local.webhook_receiver import WebhookReceiver
from notifications import transport
from tests.functional.conftest import FakeClock
from tests.support.endpoints import SECRET, Line, Receiver, documented_verify, endpoint
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WebhookReceiver, str]]:
    """Yields the receiver and the base URL of the server that has it."""
    local = settings.model_copy(update={"webhooks_to_this_machine": True})
    monkeypatch.setattr(webhook_urls, "settings", local)
    monkeypatch.setattr(transport, "_TOTAL_SECONDS", 0.5)
    monkeypatch.setattr(webhook_receiver, "_HANG_SECONDS", 1)
    made = WebhookReceiver()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(made.create_app(), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield made, f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(5)


def test_each_answer_has_its_result_and_what_arrives_verifies(
    receiver: tuple[WebhookReceiver, str], world: World, company: Company, sqs: FakeSqs, now: FakeClock
):
    (made, base), line = receiver, Line(sqs, world, company, Receiver())
    webhook = endpoint(company, url=f"{base}/hook")
    for mode, result in (("200", (200, None)), ("500", (500, "status")), ("redirect", (302, "redirect"))):
        chosen = urllib.request.Request(f"{base}/mode", f"mode={mode}".encode())
        page = urllib.request.urlopen(chosen, timeout=5).read().decode()
        assert "Webhooks on this machine" in page
        assert made.mode == mode
        line.tell()
        assert line.deliveries(webhook)[0].log[-1][1:3] == result
        documented_verify()(SECRET, made.received[0].headers, made.received[0].body.encode(), clock.now())
        now.advance(1)
    made.mode = "hang"
    line.tell()
    assert line.deliveries(webhook)[0].log[-1][1:3] == (None, "timeout")
    shown = urllib.request.urlopen(f"{base}/", timeout=5).read().decode()
    assert all(text in shown for text in ("hang", "redirect", "webhook-signature"))
