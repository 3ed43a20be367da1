"""Repositories and their links are read and written without a change."""

from typing import Any

from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.table.stored import read_map

_OWNER, _LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
LINK: dict[str, Any] = {
    "projectId": f"prj_{_OWNER}{_LOCAL}",
    "productionBranch": "release",
    "rootDirectory": None,
    "pullRequestScansEnabled": True,
}
REPOSITORY: dict[str, Any] = {
    "pk": f"ORG#org_{_OWNER}",
    "sk": f"REPO#{_LOCAL}",
    "repositoryId": f"rep_{_OWNER}{_LOCAL}",
    "installationId": 4711,
    "owner": "acme",
    "name": "shop",
    "htmlUrl": "https://github.com/acme/shop",
    "defaultBranch": "main",
    "visibility": "private",
    "connectedAt": "2026-03-04T05:06:07.000Z",
    "links": [LINK],
    "previewUsed": True,
}


def test_stored_repositories_and_links_are_written_back_unchanged():
    settings = {"scanOnPush": True, "schedule": "weekly", "failureThreshold": "P3"}
    for link in (LINK, LINK | settings):
        stored = REPOSITORY | {"links": [link]}
        assert RepositoryItem.from_item(stored).to_item() == stored


def test_a_link_without_settings_has_the_default_ones():
    link = read_map(Link, LINK)
    assert (link.scan_on_push, link.schedule, link.failure_threshold) == (False, None, "P1")
    assert link.next_scheduled_scan(RepositoryItem.from_item(REPOSITORY).repository_id) is None
