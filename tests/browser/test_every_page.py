"""Every page that links lead to: no violation of axe's rules, and nothing moves sideways on a phone."""

import re
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.browser.conftest import LOOKS, Stack, Visit

# Downloads, other formats, what ends the session or leaves the service, and the reference, which has its own test.
ELSEWHERE = re.compile(
    r"\.(csv|json|md|txt|sarif|svg)$|^/v1/|^/\.|/export$|^/sign-|^/signed-|/github$|^/docs/(reference|rules/)|stand-in"
)
ID = re.compile(r"\b[a-z]{2,4}_[a-z0-9]{10,}")
MOST = 150


@LOOKS
def test_every_page_is_accessible_and_fits(stack: Stack, visit: Callable[..., Visit], width: str, scheme: str):
    stack.scan()
    person = visit(width, scheme)
    person.open("/organizations")
    person.sign_in(stack.person())
    person.page.get_by_role("heading", name="Organizations", level=1).wait_for()
    slug = stack.credentials["organizations"][0]["slug"]
    pending, seen = deque(["/", f"/organizations/{slug}", "/docs", "/nope"]), set[str]()
    while pending:
        path = pending.popleft()
        kind = ID.sub("*", path)
        # Other organizations' pages are like this one's.
        if kind in seen or ELSEWHERE.search(path) or (path.startswith("/organizations/") and slug not in path):
            continue
        seen.add(kind)
        person.open(path)
        person.look("", "every" + kind.replace("/", "-"))
        links = person.page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.href)")
        pending += [urlsplit(it).path for it in links if it.startswith(f"{stack.base_url}/")]
        assert len(seen) < MOST, seen
    assert len(seen) > 30
