"""The check of attribute names in expressions."""

import pytest

from tests.support import attributes


@pytest.fixture(autouse=True)
def _own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "unknown", set())


def _named(name: str) -> dict[str, dict[str, str]]:
    return {"ExpressionAttributeNames": {f"#{name}": name}}


def test_a_name_that_nothing_else_uses_is_noticed_in_an_update_and_in_a_leg():
    attributes.record_names(_named("expireAt"))
    attributes.record_names({"TransactItems": [{"Put": {}}, {"Update": _named("stattus")}]})
    assert attributes.unknown == {"expireAt", "stattus"}


def test_a_name_that_is_read_elsewhere_is_none():
    attributes.record_names(_named("expiresAt"))
    assert attributes.unknown == set()
