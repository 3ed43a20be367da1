"""Fixes fit their project, and after their edits the file parses and the finding is gone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ast_grep_py import SgRoot

from analysis_testing.in_process import analyze_files, inventory_of
from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import Analysis, Finding, Location
from openassent_analysis.fixes import FIXES, Edit, Fix, Project, fix_for
from openassent_analysis.inventory.stocktaking import with_loads
from openassent_analysis.reading import load_yaml
from tests.support.each import each

WRITTEN: dict[str, Any] = load_yaml(Path(__file__).with_name("fixes.yml"))
LANGUAGES = {".html": "html", ".js": "javascript", ".jsx": "tsx", ".ts": "typescript", ".tsx": "tsx"}
MOST_CHARACTERS = 4_000


class Case(NamedTuple):
    name: str
    vendor: str
    path: str
    before: str
    after: str
    files: Mapping[str, str]
    new: str = ""
    says: Sequence[str] = ()
    code: str = ""


def cases() -> Iterator[Case]:
    for it in WRITTEN["cases"]:
        lines: list[str] = it["lines"]
        before = "".join(f"{line.removeprefix('- ')}\n" for line in lines if not line.startswith("+ "))
        after = "".join(f"{line.removeprefix('+ ')}\n" for line in lines if not line.startswith("- "))
        for name in it["in"]:
            files = {**WRITTEN["setups"][name], it["path"]: before}
            named = f"{it['name']}, {name}, {it['path']}"
            said = {key: it[key] for key in ("new", "says", "code") if key in it}
            yield Case(named, it["vendor"], it["path"], before, after, files, **said)


CASES = [*cases()]


def scan(files: Mapping[str, str]) -> tuple[Analysis, Project]:
    result = analyze_files([(path, content.encode()) for path, content in files.items()])
    return result, Project.of(with_loads(inventory_of(files), result.loads), result)


def fix_of(case: Case) -> Fix:
    result, project = scan(case.files)
    [finding] = [it for it in result.findings if it.category == "trackers" and it.vendor_ids == (case.vendor,)]
    fix = fix_for(finding, project)
    assert fix is not None
    return fix


def applied(files: Mapping[str, str], edits: tuple[Edit, ...]) -> dict[str, str]:
    result = dict(files)
    for edit in sorted(edits, key=lambda it: it.start_line, reverse=True):
        if not edit.before:
            assert edit.path not in files
            result[edit.path] = f"{edit.after}\n"
            continue
        lines = result[edit.path].split("\n")
        last = edit.start_line + edit.before.count("\n")
        assert "\n".join(lines[edit.start_line - 1 : last]).removesuffix("\r") == edit.before
        ending = "\r" if lines[last - 1].endswith("\r") else ""
        lines[edit.start_line - 1 : last] = f"{edit.after}{ending}".split("\n")
        result[edit.path] = "\n".join(lines)
    return result


def errors(path: str, content: str) -> int:
    language = LANGUAGES.get(Path(path).suffix)
    return len(SgRoot(content, language).root().find_all({"rule": {"kind": "ERROR"}})) if language else 0


@each("case", CASES, ids=lambda case: case.name)
def test_edits_change_only_what_the_consent_library_asks(case):
    fix = fix_of(case)
    files = applied(case.files, fix.edits)
    assert files[case.path] == case.after
    assert sum(len(it.before) + len(it.after) for it in fix.edits) <= MOST_CHARACTERS
    assert bool(fix.edits) is (case.before != case.after)
    # Without edits, the code to paste says what to do instead.
    assert fix.edits or fix.code
    assert case.code in fix.code
    [new] = [it for it in fix.edits if not it.before] or [Edit(case.new, 1, "", "")]
    assert not case.new or new.path == case.new
    assert all(it in new.after for it in case.says)


@each("case", [case for case in CASES if case.before != case.after], ids=lambda case: case.name)
def test_the_finding_is_gone_after_the_edits(case):
    files = applied(case.files, fix_of(case).edits)
    for path, content in files.items():
        assert errors(path, content) == (errors(path, case.files[path]) if path in case.files else 0)
    result, _ = scan(files)
    assert [it.title for it in result.findings if it.category == "trackers" and case.vendor in it.vendor_ids] == []


def test_a_fix_as_json_has_its_edits():
    case = next(it for it in CASES if it.before != it.after)
    written = json.loads(json.dumps(fix_of(case).as_dict()))
    [edit] = written["edits"]
    assert edit.keys() == {"path", "startLine", "before", "after"}
    assert (edit["path"], edit["startLine"]) == (case.path, 2)


def test_hits_that_code_sends_itself_have_no_fix_that_a_tag_needs():
    sent = "const el = document.body;\nfetch('https://www.google-analytics.com/mp/collect?measurement_id=' + id);\n"
    result, project = scan({"send.js": sent})
    [finding] = [it for it in result.findings if it.category == "trackers"]
    assert fix_for(finding, project) is None


def finding(path: str, *vendor_ids: str, category: str = "trackers") -> Finding:
    place = Location(path, 1, 1, 1, 2, "")
    return Finding("r", "t", "d", category, "high", "P1", place, "", (), "0" * 32, "0" * 32, 0, "", vendor_ids)


def project(*technologies: str, vendors: tuple[str, ...] = ()) -> Project:
    return Project(frozenset(technologies), frozenset(vendors))


NEXT, PHONE = project("nextjs", "react", "npm"), project("react-native", "react", "npm")
STATIC, ERB = project("jekyll"), "app/views/layouts/application.html.erb"
# A finding's file and vendor, its project, the packages of the fix, and what its code says and doesn't say.
CHOSEN = [
    ("app/layout.tsx", "posthog", NEXT, ("@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"),
     "import { posthog } from '@c15t/scripts/posthog';", ""),
    ("app/layout.tsx", "posthog", NEXT, ("@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"), "loadMode: 'after-consent'", ""),
    ("src/App.jsx", "meta-pixel", project("react", "vite", "yarn"), ("@c15t/react@^2.2", "@c15t/scripts@^2.2"), "",
     "'use client'"),
    *((path, "hotjar", project("vite", "pnpm"), ("c15t@^2.2", "@c15t/scripts@^2.2"), "saveConsents('necessary')", "")
      for path in ("src/main.ts", "src/App.vue", "src/routes/+layout.svelte", "src/pages/index.astro")),
    # A vendor without a helper is a script with a category.
    ("src/main.ts", "yandex-metrica", project("vite", "npm"), ("c15t@^2.2",),
     "{ id: 'yandex-metrica', src: 'THE ADDRESS OF ITS SCRIPT', category: 'measurement' }", ""),
    # A page without a build gets the vendor's consent API, or loads it by its banner.
    *((ERB, vendor, project("rails", "npm"), (), call, "c15t") for vendor, call in (
        ("google-tag-manager", "gtag('consent', 'default'"), ("meta-pixel", "fbq('consent', 'revoke')"),
        ("tiktok-pixel", "ttq.holdConsent()"), ("matomo-cloud", "['requireConsent']"),
    )),
    ("_layouts/default.html", "statcounter", STATIC, (), "allow('analytics')", "c15t"),
    ("app/layout.tsx", "hotjar", project("nextjs", "npm", vendors=("cookiebot",)), (),
     'data-cookieconsent="statistics"', "c15t"),
    ("App.tsx", "mixpanel", PHONE, (), "opt_out_tracking_by_default", "c15t"),
    ("about.html", "youtube", project(), (), "youtube-nocookie.com", "c15t"),
]  # fmt: skip


@each("case", CHOSEN, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_fix_fits_the_project(case):
    path, vendor, kind, packages, said, unsaid = case
    fix = fix_for(finding(path, vendor), kind)
    assert (fix.packages, said in fix.code, bool(unsaid) and unsaid in fix.code) == (packages, True, False)
    assert fix.language == "tsx" or kind is not NEXT


def test_only_findings_about_loading_one_vendor_have_a_fix():
    assert fix_for(finding("a.js", "hotjar", category="personal-data"), project()) is None
    assert fix_for(finding("a.js"), project()) is None
    assert fix_for(finding("a.js", "hotjar", "heap"), project()) is None
    assert fix_for(finding("App.tsx", "google-ads"), PHONE) is None


class TestFacts:
    def test_every_vendor_is_in_the_catalog(self):
        written: dict[str, Any] = load_yaml(FIXES)
        named = {
            *written["c15t"]["vendors"], *written["options"], *written["embeds"],
            *(it["vendor"] for it in written["managers"]),
            *(vendor for it in written["apis"] for vendor in it["vendors"]),
        }  # fmt: skip
        assert named <= catalogue().vendors.keys()

    def test_every_tracker_has_a_fix_without_placeholders_in_every_kind_of_project(self):
        trackers = ("analytics", "marketing", "tag-manager", "session-replay", "ab-testing", "chat", "social")
        kinds = [
            ("app/page.tsx", project("nextjs", "npm")), ("src/a.jsx", project("react", "npm")),
            ("src/a.ts", project("npm")), ("index.php", project()),
            ("index.html", project(vendors=("onetrust",))), ("index.html", project(vendors=("cookieyes",))),
            ("index.html", project(vendors=("vanilla-cookieconsent",))),
        ]  # fmt: skip
        for vendor in catalogue().vendors.values():
            if vendor.category not in trackers:
                continue
            for path, kind in kinds:
                fix = fix_for(finding(path, vendor.id), kind)
                assert fix is not None, vendor.id
                assert not {"{VENDOR}", "{HOST}", "{PURPOSE}"} & set(fix.code.split()), vendor.id
                assert "{PURPOSE}" not in fix.code
