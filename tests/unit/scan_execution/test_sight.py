"""Sight: a scan's knowledge of the files that it read, and of those that it didn't."""

from openassent_analysis.identities import WHOLE_PROJECT
from scan_execution.identities import Sight
from tests.support.each import each


class TestSight:
    @each(("path", "covered"), [
        ("apps/web/a.js", True), ("apps/website/a.js", False), ("a.js", False), ("apps/web/large.js", False),
        ("apps/web/dist/a.js", False), (WHOLE_PROJECT, False),
    ])  # fmt: skip
    def test_covers_the_root_directory_without_uncertain_files(self, path, covered):
        sight = Sight("prj", "apps/web", {"apps/web/large.js"}, set(), False)
        assert sight.covers(path) is covered

    def test_covers_the_whole_project_if_everything_was_read_or_something_asks_for_consent(self):
        assert Sight("prj", None, set(), set(), False).covers(WHOLE_PROJECT)
        assert Sight("prj", None, {"a.js"}, set(), True).covers(WHOLE_PROJECT)
