"""Which file a module's name means, and that neither the order of files nor a forged report decides about findings."""

import random
from pathlib import Path

import yaml

from analysis_testing.in_process import analyze_files
from openassent_analysis import links
from openassent_analysis.gating import OPEN, PAGE, WHOLE, Export, Gate, Gating, Provider, Use
from openassent_analysis.links import Links, Verdict
from openassent_analysis.modules import name, stem
from openassent_analysis.report import Report
from tests.support.each import each

ACROSS = [
    case
    for topic in ("across-files", "across-templates")
    for case in yaml.safe_load((Path(__file__).parent / "cases" / f"{topic}.yml").read_text())
]
RUNS = Gating(Gate.CALLERS, ("start",))


class TestResolution:
    @each(
        ("importer", "module", "path"),
        [
            ("src/main.ts", "./tag", "src/tag.ts"),
            ("src/main.ts", "./tag.js", "src/tag.ts"),
            ("src/a/b.ts", "../tag", "src/tag.ts"),
            ("src/main.ts", "./lib", "src/lib/index.ts"),
            ("src/main.ts", "@/lib/tag", "src/lib/tag.tsx"),
            ("src/routes/+layout.svelte", "$lib/Tag.svelte", "src/lib/Tag.svelte"),
            ("apps/web/main.ts", "@acme/tags", "packages/tags/src/index.ts"),
            ("templates/base.html", "includes/tags.html", "web/templates/includes/tags.html"),
            ("resources/views/app.blade.php", "partials.tags", "resources/views/partials/tags.blade.php"),
            ("app/views/layouts/application.html.erb", "layouts/tags", "app/views/layouts/_tags.html.erb"),
            ("lib/web/page.html.eex", "_tags.html", "lib/web/shared/_tags.html.eex"),
        ],
    )
    def test_a_module_is_found_by_its_name(self, importer, module, path):
        assert Links([importer, path, "src/other.ts"]).resolve(importer, module) == [path]

    def test_a_relative_module_is_only_the_file_that_it_names(self):
        assert Links(["src/a.ts", "lib/tag.ts"]).resolve("src/a.ts", "./tag") == []

    def test_the_nearest_of_several_files_is_meant(self):
        paths = ["apps/admin/src/tag.ts", "apps/web/src/tag.ts"]
        for importer in ("apps/web/src/main.ts", "apps/admin/src/main.ts"):
            application = importer.split("/")[1]
            assert Links(paths).resolve(importer, "~/tag") == [f"apps/{application}/src/tag.ts"]

    def test_a_general_name_is_that_of_the_folder(self):
        assert (name("packages/tags/src/index.ts"), stem("Site-Tag.vue")) == ("tags", "sitetag")


class TestOrder:
    def test_the_order_of_files_doesnt_change_findings(self):
        shuffled = random.Random(13)
        for case in ACROSS:
            files = [(path, text.encode()) for path, text in (case.get("ungated") or case["gated"]).items()]
            expected = sorted(map(str, analyze_files(files).findings))
            shuffled.shuffle(files)
            assert sorted(map(str, analyze_files(files).findings)) == expected, case["name"]


class TestForgedReports:
    def test_files_that_nobody_asked_about_are_ignored(self):
        found = Links(["src/tag.ts"])
        found.add("src/main.ts", Report(uses=[Use(Export("../../etc/passwd", "start"), OPEN)] * 500))
        assert found.verdict("src/tag.ts", RUNS) is Verdict.UNREAD

    def test_a_cycle_of_files_ends(self):
        found = Links(["src/a.ts", "src/b.ts"])
        for one, other in (("a", "b"), ("b", "a")):
            start = Export(f"./{other}", "start")
            uses = [Use(start, RUNS), Use(Export(f"./{other}", WHOLE), Gating(Gate.CALLERS, (WHOLE,)))]
            found.add(f"src/{one}.ts", Report(uses=uses, providers=[Provider("start", start)]))
        found.mark(["src/a.ts", "src/b.ts"], ["start"], ["src/a.ts", "src/b.ts"])
        waits = Gating(Gate.CALLERS, ("start",), (Export("./b", "start"),))
        assert found.verdict("src/a.ts", waits) is Verdict.UNUSED

    def test_names_are_kept_up_to_a_limit_of_the_whole_project(self, monkeypatch):
        monkeypatch.setattr(links, "_MAX_CHARACTERS", 1_000)
        found = Links(["src/tag.ts"])
        found.add("src/a.ts", Report(uses=[Use(Export("./none", "x" * 500), OPEN)] * 10))
        found.add("src/main.ts", Report(uses=[Use(Export("./tag", "start"), OPEN)]))
        found.mark(["src/tag.ts"], ["start"], ["src/tag.ts"])
        assert found.verdict("src/tag.ts", RUNS) is Verdict.UNUSED

    def test_steps_are_counted_for_the_whole_project(self, monkeypatch):
        monkeypatch.setattr(links, "_MAX_FOLLOWED", 10)
        found = Links(["src/tag.ts", *(f"src/{number}.ts" for number in range(100))])
        for number in range(100):
            found.add(f"src/{number}.ts", Report(uses=[Use(Export("./tag", "start"), RUNS)]))
        found.mark(["src/tag.ts"], ["start"], ["src/tag.ts"])
        assert found.verdict("src/tag.ts", RUNS) is Verdict.UNREAD

    def test_a_shared_function_isnt_one_that_the_file_exports(self):
        found = Links(["js/tag.js", "js/site.js"])
        found.add("js/tag.js", Report(uses=[Use(Export("", "start"), RUNS)]))
        found.add("js/site.js", Report(uses=[Use(Export(PAGE, "start"), OPEN)]))
        found.mark(["js/tag.js", "js/site.js"], ["start"], ["js/tag.js"])
        assert found.verdict("js/tag.js", RUNS) is Verdict.UNUSED
