"""Manifests of any content: what they name is found, and nothing in them fails a scan or shows up in an inventory."""

import json
import tracemalloc
from collections.abc import Iterator

from analysis_testing.in_process import inventory_of
from openassent_analysis import Limits
from openassent_analysis.catalogue import catalogue
from openassent_analysis.examine import examine
from openassent_analysis.files import Skipped
from openassent_analysis.inventory.listing import (
    MAX_LOCK_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    MAX_MANIFESTS,
    MAX_PATH,
    Listing,
)
from openassent_analysis.inventory.manifests import is_manifest, parts_of
from openassent_analysis.inventory.stocktaking import take_inventory
from openassent_analysis.report import MAX_PARTS, Answer, Request, read_report, write_report

NAMES = (
    "package.json", "yarn.lock", "package-lock.json", "pnpm-lock.yaml", "composer.json", "pyproject.toml", "Pipfile",
    "requirements.txt",
    "requirements-dev.in", "requirements/base.txt", "Gemfile", "gems.rb", "go.mod", "Cargo.toml", "mix.exs",
    "pubspec.yaml", "pom.xml", "build.gradle", "a.csproj",
)  # fmt: skip
POSTHOG = {"dependencies": {"posthog-js": "^1.2.0"}}


def names(path: str, text: str) -> set[tuple[str, str]]:
    return {(part.id, part.version) for part in parts_of(path, text)}


def vendors(files):
    return {it.id: [tuple(package) for package in it.packages] for it in inventory_of(files).vendors}


class TestDependencies:
    def test_every_group_of_every_format_is_read(self):
        for path, text, expected in (
            ("package.json", '{"devDependencies": {"next": "15"}}', {("nextjs", "15")}),
            ("package.json", '{"optionalDependencies": {"vue": "~3.5"}}', {("vue", "~3.5")}),
            ("package.json", '{"peerDependencies": {"react": ">=18 || ^19"}}', {("react", ">=18 || ^19")}),
            ("composer.json", '{"require-dev": {"laravel/framework": "11.*"}}', {("laravel", "11.*")}),
            ("pyproject.toml", '[project]\ndependencies = ["Django ~= 5.2"]', {("django", "~= 5.2")}),
            ("pyproject.toml", '[project.optional-dependencies]\nweb = ["flask"]', {("flask", "")}),
            ("pyproject.toml", '[dependency-groups]\nx = ["fastapi>1", {include-group = "y"}]', {("fastapi", ">1")}),
            ("pyproject.toml", '[tool.poetry.dependencies]\nflask = "^3"', {("flask", "^3"), ("poetry", "")}),
            ("pyproject.toml", '[tool.poetry.group.a.dependencies]\nflask = {version = "3"}',
             {("flask", "3"), ("poetry", "")}),
            ("Pipfile", '[packages]\nDjango = "*"\n[dev-packages]\nsphinx = "==8.1"',
             {("django", ""), ("sphinx", "==8.1")}),
            ("requirements/base.txt", "django", {("django", ""), ("pip", "")}),
            ("requirements-dev.txt", "-r base.txt\n--index-url https://a.example\nfastapi == 0.115.0 # web\n",
             {("fastapi", "== 0.115.0"), ("pip", "")}),
            ("Gemfile", 'gem "rails", github: "rails/rails"\ngem("sinatra", "4.0")\n# gem "jekyll"\n',
             {("rails", ""), ("sinatra", "4.0")}),
            ("go.mod", "require github.com/gin-gonic/gin v1.10.0 // indirect\n", {("gin", "v1.10.0")}),
            ("Cargo.toml", '[workspace.dependencies]\naxum = "0.8"\n', {("axum", "0.8")}),
            ("build.gradle", "plugins { id 'org.springframework.boot' version '3.4.0' }", {("spring-boot", "")}),
            ("a.csproj", '<Project Sdk="Microsoft.NET.Sdk.Web"><PackageReference Include="A"/>',
             {("aspnet-core", ""), ("nuget", "")}),
        ):  # fmt: skip
            assert names(path, text) == expected, (path, text)

    def test_a_version_that_could_be_a_secret_is_not_shown(self):
        for version in (
            "git+https://user:token@github.com/vercel/next.js", "npm:next@15", "file:../next", "workspace:*", "latest",
            "1" * 61, "https://x-access-token:ghp_1@github.com/a.tgz", "1.0\n2.0", "user@1", "", 15, None, ["15"],
        ):  # fmt: skip
            assert names("package.json", json.dumps({"dependencies": {"next": version}})) == {("nextjs", "")}, version

    def test_a_vendors_packages_are_found_with_version_and_manifest(self):
        files = {
            "package.json": json.dumps(POSTHOG),
            "apps/a/package.json": json.dumps({"dependencies": {"posthog-js": "1.0.0", "mixpanel-browser": "2"}}),
        }
        assert vendors(files) == {
            "posthog": [("posthog-js", "1.0.0", "apps/a/package.json", "1.0.0")],
            "mixpanel": [("mixpanel-browser", "2", "apps/a/package.json", "2.x")],
        }

    def test_of_several_manifests_that_name_a_package_the_one_with_the_lowest_newest_version_counts(self):
        for written, expected in (
            (("^1.2.0", "1.10.0", "1.9.0"), 2),
            (("latest", "^1.2.0", "^1.2.0"), 1),
            (("latest", "latest", "latest"), 0),
            (("1.2.x", "^1.2.0", "0.9.0 || 1.2.1"), 2),
        ):
            files = {
                f"{'a/' * number}package.json": json.dumps({"dependencies": {"posthog-js": it}})
                for number, it in enumerate(written)
            }
            ((package,),) = vendors(files).values()
            assert package[2] == f"{'a/' * expected}package.json", written

    def test_a_packages_newest_version_is_that_of_the_nearest_lock_file_or_the_newest_allowed_one(self):
        def newest(written, **locks):
            files = {"a/b/package.json": json.dumps({"dependencies": {"posthog-js": written}}), **locks}
            ((package,),) = vendors(files).values()
            return package[3]

        yarn = '"posthog-js@npm:^1.9.0":\n  version: 1.9.1\n\n"posthog-js@npm:^1.2.0":\n  version: 1.3.0\n'
        npm = '{\n  "packages": {\n    "node_modules/posthog-js": {\n      "version": "1.4.2",\n'
        pnpm = "packages:\n\n  posthog-js@1.5.0:\n    resolution: {}\n"
        for written, locks, expected in (
            ("^1.2.0", {}, "1.x"), ("~1.2.0", {}, "1.2.x"), ("1.2.0", {}, "1.2.0"), (">=1.2.0", {}, None),
            ("latest", {}, None), ("1.2.0 || 2.x", {}, "2.x"),
            ("^1.2.0", {"yarn.lock": yarn}, "1.3.0"),
            ("^1.2.0", {"a/b/package-lock.json": npm, "yarn.lock": yarn}, "1.4.2"),
            ("^1.2.0", {"a/pnpm-lock.yaml": pnpm, "c/package-lock.json": npm}, "1.5.0"),
            ("^1.2.0", {"a/b/package-lock.json": '{"packages": {'}, "1.x"),
        ):  # fmt: skip
            assert newest(written, **locks) == expected, (written, locks)

    def test_a_package_that_only_a_lock_file_names_is_not_one_of_the_repository(self):
        assert vendors({"package.json": "{}", "pnpm-lock.yaml": "packages:\n\n  posthog-js@1.5.0:\n"}) == {}

    def test_packages_of_ruby_and_php_are_found(self):
        files = {
            "Gemfile": 'gem "rails"\ngem "intercom-rails", "~> 0.4"\n',
            "composer.json": json.dumps({"require": {"spatie/laravel-googletagmanager": "^2.6"}}),
        }
        assert vendors(files) == {
            "intercom": [("intercom-rails", "~> 0.4", "Gemfile", None)],
            "google-tag-manager": [("spatie/laravel-googletagmanager", "^2.6", "composer.json", None)],
        }

    def test_every_package_of_the_vendor_catalogue_is_found_in_a_manifest(self):
        for vendor in catalogue().vendors.values():
            for package in vendor.packages:
                found = inventory_of({"package.json": json.dumps({"dependencies": {package: "1.0.0"}})}).vendors
                assert [it.id for it in found] == [vendor.id]


class TestHostile:
    CONTENTS = (
        b"", b"\0", b"\xff\xfe", b"\xff\xfe\x00", b"\xff" * 99, b"null", b"5", b"[]", b'"a"', b"true", b"NaN",
        b"[" * 100_000, b'{"a":' * 100_000, b"a = " + b"[" * 50_000, b"[" + b"a." * 30_000 + b"a]",
        b"a." * 50_000 + b" = 1",
        b'{"dependencies": 5}', b'{"dependencies": [1]}', b'{"dependencies": null, "packageManager": 5}',
        b'{"dependencies": {"next": {"next": 5}}, "packageManager": "\\ud800@1"}',
        b'{"packageManager": "npm@\\ud8001"}',
        b'{"require": "a"}', b"9" * 100_000, b'{"dependencies": {"react": ' + b"9" * 100_000 + b"}}",
        b"[project]\ndependencies = 5", b"[project]\ndependencies = [5, [5], {a = 5}]", b"project = 5", b"tool = 5",
        b"[tool]\npoetry = 5\nuv = [1]", b"[tool.poetry]\ndependencies = 5\ngroup = 5", b"[tool.poetry.group]\na = 5",
        b"[tool.poetry.dependencies]\ndjango = 5\nflask = {version = 5}", b"dependency-groups = {a = 5}",
        b"packages = 5", b"[packages]\ndjango = [5]", b"dependencies = 5", b"[workspace]\ndependencies = [5]",
        b"gem 'rails', '" + b"1" * 100_000, b"gem 'rails', '\xff'", b"require " + b"a/" * 50_000,
        b'{:phoenix, "' * 9_000,
        b"django" + b" " * 100_000 + b"== 1", b"- &a [*a]\n", b"a: &a\n  <<: *a\n", b"\n" * 200_000, b"{" * 200_000,
    )  # fmt: skip

    def test_no_content_of_any_manifest_fails_the_inventory(self):
        for name in NAMES:
            assert is_manifest(name)
            files = {"apps/web/package.json": json.dumps(POSTHOG)}
            files |= {f"{number}/{name}": content for number, content in enumerate(self.CONTENTS)}
            found = inventory_of(files)
            assert found.files == len(files)
            assert "posthog" in {it.id for it in found.vendors}
            for technology in (*found.frameworks, *found.package_managers):
                assert technology.version is None or len(technology.version) <= 60

    def test_a_report_on_a_manifest_with_every_known_package_fits(self):
        everything = {package: "1" * 60 for vendor in catalogue().vendors.values() for package in vendor.packages}
        report = examine("package.json", "inventory", json.dumps({"dependencies": everything}).encode(), Limits())
        assert MAX_PARTS >= len(report.parts) > 50
        assert read_report(write_report(report), 600).parts == report.parts


class TestLimits:
    def test_a_manifest_that_is_too_large_or_too_deep_is_not_read(self):
        manifest = json.dumps(POSTHOG)
        assert vendors({"package.json": manifest + " " * MAX_MANIFEST_BYTES}) == {}
        deep = "a/" * (MAX_PATH // 2)
        assert vendors({f"{deep}package.json": manifest, f"{deep}b.js": "x"}) == {}
        assert vendors({"a/" * 60 + "package.json": manifest}) != {}

    def test_an_inventory_without_a_manifest_or_lock_file_that_is_too_large_is_truncated(self):
        for name, most in (("package.json", MAX_MANIFEST_BYTES), ("yarn.lock", MAX_LOCK_FILE_BYTES)):
            for size, expected in ((most, False), (most + 1, True)):
                listing = Listing()
                listing.take(f"web/{name}", size)
                assert listing.truncated is expected, (name, size)
        listing = Listing()
        listing.take("web/app.js", MAX_LOCK_FILE_BYTES + 1)
        listing.take("node_modules/a/package.json", MAX_MANIFEST_BYTES + 1)
        assert not listing.truncated

    def test_of_too_many_manifests_those_nearest_to_the_root_are_read(self):
        files = {f"a/{number:04}/package.json": "{}" for number in range(3 * MAX_MANIFESTS)}
        found = inventory_of({**files, "package.json": json.dumps(POSTHOG)})
        assert found.truncated
        assert [it.id for it in found.vendors] == ["posthog"]
        assert not inventory_of({"package.json": "{}"}).truncated

    def test_files_kept_only_as_manifests_are_limited_in_number(self):
        listing = Listing()
        kept = [listing.take(f"{number}/requirements.txt", 9) for number in range(2 * MAX_MANIFESTS)]
        assert kept.count(None) == listing.only_manifests == MAX_MANIFESTS
        assert set(kept) == {None, "other kind of file"}
        assert listing.truncated
        assert listing.take("package.json", 9) is None

    def test_an_inventory_that_runs_out_of_time_is_truncated(self, tmp_path):
        listing = Listing()
        listing.take("package.json", 9)
        (tmp_path / "package.json").write_text(json.dumps(POSTHOG))

        def too_slow(requests: Iterator[Request], _: float) -> Iterator[Answer]:
            return ((request, Skipped("out of time")) for request in requests)

        found = take_inventory(listing, 1, tmp_path, too_slow)
        assert found.truncated
        assert [it.id for it in found.package_managers] == ["npm"]

    def test_the_memory_of_a_listing_does_not_grow_with_its_files(self):
        listing = Listing()
        for number in range(2_000):
            listing.take(f"src/{number}/package.json", 10)
        tracemalloc.start()
        for number in range(20_000):
            listing.take(f"src/{number}/module-{number}.tsx", number)
            listing.take(f"lib/{number}/package.json", 10)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1024**2

    def test_the_names_of_files_that_are_left_out_use_bounded_memory(self):
        listing = Listing()
        tracemalloc.start()
        for number in range(20_000):
            listing.leave_out(f"src/{number:01000}.js", "link")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 6 * 1024**2
        assert listing.has_more_unread
