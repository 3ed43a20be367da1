"""The pages of webhooks, as an owner uses them: create an endpoint, see a delivery fail, and replay it."""

import urllib.request
from collections.abc import Callable

from tests.browser.conftest import LOOKS, Stack, Visit


@LOOKS
def test_an_owner_creates_an_endpoint_and_replays_a_delivery(
    stack: Stack, visit: Callable[..., Visit], width: str, scheme: str
):
    person = visit(width, scheme)
    person.open("/organizations/acme/webhooks")
    person.sign_in(stack.person())
    person.look("Webhooks", "webhooks")
    person.page.get_by_label("Name").fill(f"Alerts on a {width}")
    person.page.get_by_label("URL").fill("ftp://hooks.example.com")
    person.press("Create endpoint")
    person.look("Webhooks", "webhooks-problem")
    person.page.get_by_label("URL").fill(f"{stack.base_url}/webhook-receiver/elsewhere")
    person.page.get_by_label("An API key is created or rolled").check()
    person.press("Create endpoint")
    person.look("Copy the secret", "webhook-secret")
    person.page.get_by_role("link", name="Open the endpoint").click()
    person.look(f"Alerts on a {width}", "webhook")
    path = person.page.url
    person.open("/organizations/acme/keys")
    person.page.get_by_label("Name of a new key").fill("Deploys")
    person.press("Create key")
    person.page.goto(path)
    urllib.request.urlopen(f"{stack.base_url}/webhook-receiver/send", b"", timeout=60).close()
    # The list refreshes itself.
    link = person.page.get_by_role("link", name="key.created").first
    link.wait_for()
    person.page.get_by_text("Pending").first.wait_for()
    person.look(f"Alerts on a {width}", "webhook-deliveries")
    link.click()
    person.look("key.created", "webhook-delivery")
    person.press("Replay")
    person.page.get_by_text("The event is being sent again.").wait_for()
    person.look("key.created", "webhook-replayed")
