"""Fixtures for the tests of the pages: an identity provider, a browser, and a signed-in visitor."""

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.code_host.items import RepositoryItem
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Update, table
from controlplane.scans.items import ScanItem
from tests.functional.dashboard.issuer import Issuer
from tests.functional.projects.builders import make_project
from tests.support.api import Reply
from tests.support.audits import make_issue
from tests.support.browser import Browser
from tests.support.table import PREPARED

# Text of a person or a source that no page may run, or render as a template.
HOSTILE = "\"><script>alert(1)</script>{{739*911}}'&"
# The findings of a scan, on lines 1 to 5. A free preview shows three of them.
ISSUES = [make_issue(number) for number in range(1, 6)]


@pytest.fixture(scope="session")
def _running_issuer():
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture
def issuer(_running_issuer, monkeypatch):
    """Returns a healthy identity provider with no cached metadata or keys."""
    _running_issuer.changes, _running_issuer.metadata, _running_issuer.header = {}, {}, {}
    _running_issuer.signs_with = _running_issuer.answer = _running_issuer.forge = None
    _running_issuer.fetched.clear()
    monkeypatch.setattr("dashboard.access.sign_in._providers", {})
    monkeypatch.setitem(settings.__dict__, "sign_in_issuer", _running_issuer.url)
    monkeypatch.setitem(settings.__dict__, "sign_in_client_id", _running_issuer.client_id)
    return _running_issuer


@pytest.fixture(autouse=True)
def _same_salt(monkeypatch):
    """Gives all pages of a session the same CSRF token, so that tests can compare pages."""
    monkeypatch.setattr("controlplane.access.web_session.token_hex", lambda length: "00" * length)


@pytest.fixture
def browser(api):
    return Browser(api)


@pytest.fixture
def person(world):
    return world.person()


@pytest.fixture
def company(world, person):
    """Returns an organization that the person owns."""
    return world.company(owner=person)


@pytest.fixture
def repository(world, company):
    """Returns a repository of the company, which is linked to a project of the same name."""
    return world.connected_repository(company, name="shop")


@pytest.fixture
def project(company):
    return make_project(company)


@pytest.fixture
def visitor(browser, person):
    """Returns a browser in which the person is signed in."""
    return browser.signed_in(person.user_id)


def change(stored: ScanItem | RepositoryItem, **values: Any) -> None:
    """Sets attributes of the stored item."""
    settings = ", ".join(f"#{name} = :{name}" for name in values)
    table.update(Update(stored.key, f"SET {settings}", values=values), PREPARED)


def pages_in(area: str) -> Callable[..., str]:
    """Returns a function of an organization that returns the path of a page in this area of it."""
    return lambda company, below="": f"/organizations/{company.slug}/{area}{below}"


def pages_of(browser: Browser, target: str, following: str = "Next page") -> Iterator[Reply]:
    """Yields a list's pages, one after the other, with the link to the following one."""
    yield browser.get(target)
    while browser.offers(following):
        yield browser.press(following)


def rows_of(reply: Reply) -> list[dict[str, str]]:
    """Returns the rows of a CSV file, which begins as spreadsheets expect."""
    assert reply.status == 200
    assert reply.text.startswith("\ufeff")
    return [*csv.DictReader(io.StringIO(reply.text[1:]))]
