"""Reads of the code host's lists of repositories."""

from typing import Any

from controlplane.github import people
from tests.support.each import each


def _visibility(**described: Any) -> str:
    repository = {
        "id": 1,
        "owner": {"login": "acme"},
        "name": "shop",
        "html_url": "https://github.com/acme/shop",
        "default_branch": "main",
        "archived": False,
        "permissions": {"push": True},
        **described,
    }
    _, (granted,) = people._to_granted({"total_count": 1, "repositories": [repository]})
    return granted.visibility


@each("visibility", ["public", "private", "internal"])
def test_a_repository_has_the_visibility_that_the_code_host_names(visibility: str):
    assert _visibility(visibility=visibility, private=visibility != "public") == visibility


@each(("private", "visibility"), [(True, "private"), (False, "public")])
def test_without_its_name_the_visibility_follows_from_whether_it_is_private(private: bool, visibility: str):
    assert _visibility(private=private) == visibility
