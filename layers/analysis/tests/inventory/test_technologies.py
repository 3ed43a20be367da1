"""The facts about languages, frameworks, and package managers: valid, unique, and each found in a small repository."""

import json
import re
from collections import Counter

from analysis_testing.in_process import inventory_of
from openassent_analysis.inventory.technologies import REGISTRIES, technologies

KNOWN = technologies()
# A manifest of each registry that names a package with a version, and the version as the inventory shows it.
MANIFESTS = {
    "npm": ("package.json", lambda name: json.dumps({"dependencies": {name: "^1.2.3"}}), "^1.2.3"),
    "pypi": ("requirements.txt", lambda name: f"# web\n{name.title()}[x]>=1.2,<2 ; extra == 'a'\n", ">=1.2,<2"),
    "rubygems": ("Gemfile", lambda name: f"source 'https://rubygems.org'\ngem '{name}', '~> 1.2'\n", "~> 1.2"),
    "packagist": ("composer.json", lambda name: json.dumps({"require": {name: "^1.2"}}), "^1.2"),
    "go": ("go.mod", lambda name: f"module a.example/b\nrequire (\n\t{name}/v4 v4.2.1\n)\n", "v4.2.1"),
    "crates": ("Cargo.toml", lambda name: f'[dependencies]\n{name} = {{ version = "1.2", features = [] }}\n', "1.2"),
    "maven": ("pom.xml", lambda name: f"<parent><groupId>{name}</groupId></parent>", None),
    "nuget": ("Shop.csproj", lambda name: f'<Project Sdk="{name}">', None),
    "hex": ("mix.exs", lambda name: f'defp deps, do: [{{:{name}, "~> 1.2"}}]', "~> 1.2"),
    "pub": ("pubspec.yaml", lambda name: f"dependencies:\n  flutter:\n    {name}\n", None),
}  # fmt: skip


def shown(found):
    return {it.id: (it.version, it.path) for it in found}


class TestData:
    def test_every_id_and_name_is_unique(self):
        for entries in (KNOWN.frameworks, KNOWN.package_managers):
            assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", it) for it in entries)
            assert len({it.name for it in entries.values()}) == len(entries)

    def test_no_package_and_no_sign_shows_two_frameworks(self):
        for signs in (
            [package for it in KNOWN.frameworks.values() for package in it.packages],
            [file for it in KNOWN.frameworks.values() for file in (*it.files, *it.folders)],
            [file for it in KNOWN.package_managers.values() for file in it.files],
            [file for it in KNOWN.package_managers.values() for file in it.default_for],
        ):
            assert [sign for sign, count in Counter(signs).items() if count > 1] == []

    def test_every_framework_has_a_sign(self):
        assert [it.id for it in KNOWN.frameworks.values() if not (it.packages or it.files or it.folders)] == []
        assert (
            {registry for it in KNOWN.frameworks.values() for registry, _ in it.packages}
            == REGISTRIES
            == set(MANIFESTS)
        )


class TestFrameworks:
    def test_each_is_found_by_each_package_with_its_version_and_manifest(self):
        for framework in KNOWN.frameworks.values():
            for registry, package in framework.packages:
                path, manifest, version = MANIFESTS[registry]
                found = inventory_of({f"apps/web/{path}": manifest(package), "apps/other.txt": package})
                assert shown(found.frameworks) == {framework.id: (version, f"apps/web/{path}")}, package

    def test_each_is_found_by_each_file_and_folder(self):
        for framework in KNOWN.frameworks.values():
            for path in (*framework.files, *(f"{folder}/themes/a.php" for folder in framework.folders)):
                assert shown(inventory_of({path: "x"}).frameworks) == {framework.id: (None, path)}, path
                inside = f"sites/shop/{path}"
                assert shown(inventory_of({inside: "x"}).frameworks) == {framework.id: (None, inside)}, path

    def test_a_file_must_be_in_its_folder(self):
        assert inventory_of({"theme.liquid": "x", "other-layout/theme.liquid": "x"}).frameworks == ()

    def test_a_manifest_with_a_version_is_preferred_to_a_nearer_one_without(self):
        files = {
            "next.config.js": "x",
            "package.json": '{"peerDependencies": {"next": "*"}}',
            "apps/b/package.json": '{"dependencies": {"next": "15.1.0"}}',
            "apps/a/package.json": '{"dependencies": {"next": "14.0.0"}}',
        }
        assert shown(inventory_of(files).frameworks) == {"nextjs": ("14.0.0", "apps/a/package.json")}

    def test_those_of_examples_and_of_vendored_code_dont_count(self):
        manifest = '{"dependencies": {"next": "15.1.0"}}'
        files = {f"{folder}/package.json": manifest for folder in ("examples/a", "node_modules/b", "tests/c", "dist")}
        assert inventory_of({**files, "examples/next.config.js": "x"}).frameworks == ()


class TestPackageManagers:
    def test_each_is_found_by_each_of_its_files(self):
        for manager in KNOWN.package_managers.values():
            for path in manager.files:
                found = shown(inventory_of({f"a/{path}": "x"}).package_managers)
                assert found == {manager.id: (None, f"a/{path}")}, path

    def test_the_default_of_a_registry_counts_only_without_another(self):
        for manager in KNOWN.package_managers.values():
            for path in manager.default_for:
                assert shown(inventory_of({path: "x"}).package_managers) == {manager.id: (None, path)}
                for other in KNOWN.package_managers.values():
                    if other.registry == manager.registry and other.id != manager.id:
                        found = inventory_of({path: "x", f"a/{other.files[0]}": "x"}).package_managers
                        assert shown(found) == {other.id: (None, f"a/{other.files[0]}")}, (path, other.id)

    def test_a_lock_file_shows_the_generation_of_yarn(self):
        classic = '# THIS IS AN AUTOGENERATED FILE.\n# yarn lockfile v1\n\n\na@^1.0.0:\n  version "1.0.0"\n'
        modern = '# This file is generated by running "yarn install"\n\n__metadata:\n  version: 8\n'
        for text, expected in ((classic, "yarn-classic"), (modern, "yarn")):
            files = {"package.json": "{}", "yarn.lock": text + "x: 1\n" * 200_000}
            assert shown(inventory_of(files).package_managers) == {expected: (None, "yarn.lock")}

    def test_a_manifest_names_the_manager_and_its_version(self):
        for declared, expected in (
            ("pnpm@9.1.0+sha512.abcdef", ("pnpm", "9.1.0")),
            ("yarn@1.22.22", ("yarn-classic", "1.22.22")),
            ("yarn@4.2.2", ("yarn", "4.2.2")),
            ("npm@11.0.0", ("npm", "11.0.0")),
            ("bun", ("bun", None)),
        ):
            found = inventory_of({"package.json": json.dumps({"packageManager": declared})}).package_managers
            assert shown(found) == {expected[0]: (expected[1], "package.json")}, declared

    def test_a_python_project_names_its_tool(self):
        for tool in ("poetry", "uv", "pdm"):
            found = inventory_of({"pyproject.toml": f"[project]\nname = 'a'\n[tool.{tool}.x]\n"}).package_managers
            assert shown(found) == {tool: (None, "pyproject.toml")}


class TestLanguages:
    def test_each_extension_and_name_belongs_to_one_language(self):
        every = [(language, name) for name, language in {**KNOWN._by_extension, **KNOWN._by_name}.items()]
        assert {language for language, _ in every} == set(KNOWN.languages)
        for language, name in every:
            path = f"app/a.{name}" if name in KNOWN._by_extension else f"app/{name}"
            assert [it.name for it in inventory_of({path: "x"}).languages] == [language], path

    def test_counts_files_and_bytes_of_the_whole_archive(self):
        files = {
            **{f"app/models/m{number}.rb": "x" * 10 for number in range(3)},
            "app/views/a.html.erb": "x" * 7,
            "resources/views/b.blade.php": "x",
            "spec/m_spec.rb": "x" * 5,
            "app/assets/a.js": "x",
            "vendor/b.js": "x",
            "node_modules/c/d.js": "x",
            "public/e.min.js": "x",
            "README.md": "x",
            "data.json": "{}",
            "LICENSE": "x",
            ".js": "x",
        }
        found = inventory_of(files)
        assert found.files == len(files)
        assert [tuple(it) for it in found.languages] == [
            ("Ruby", 4, 35), ("HTML+ERB", 1, 7), ("Blade", 1, 1), ("JavaScript", 1, 1),
        ]  # fmt: skip
