"""A finding's location, snippet, and rank, and what a finding never shows."""

import json

import pytest

from analysis_testing.in_process import analyze_files, analyze_folder
from openassent_analysis import Limits
from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import PRIORITIES, SEVERITIES
from openassent_analysis.libraries import newest_allowed, outdated_address, parse
from openassent_analysis.secrecy import masked
from openassent_analysis.unknown import is_named_after
from tests.support.each import each

KEY = "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc"
TRACKER = "gtag('event', 'a', { email: user.email })"


def findings(path, code, **limits):
    return analyze_files([(path, code.encode())], Limits(**limits)).findings


class TestLocation:
    def test_a_location_counts_characters_from_one_and_shows_the_line(self):
        [finding] = findings("src/a.js", f"/* é😀 */\n  é('😀', '{KEY}'); hj('identify', user.email);\n")
        place = finding.location
        assert (place.path, place.start_line, place.end_line) == ("src/a.js", 2, 2)
        assert (place.start_column, place.end_column) == (15 + len(KEY), 41 + len(KEY))
        assert place.snippet == "é('😀', 'sk_l****'); hj('identify', user.email);"

    def test_a_script_in_a_page_is_located_in_the_page(self):
        code = "<html>\r\n<p>é</p>\r\n<script>\r\n  gtag('event', 'a', { email: user.email });\r\n</script>"
        place = findings("index.html", code)[0].location
        assert (place.start_line, place.start_column) == (4, 3)
        assert place.snippet == "gtag('event', 'a', { email: user.email });"
        place = findings("index.html", code.replace("\r\n", "\r"))[0].location
        assert (place.start_line, place.end_line) == (1, 1)

    def test_a_script_in_jsx_is_located_in_the_file(self):
        code = "export default () => <Script>{`\n  const a = ${b};\n  document.cookie = 'visitor_id=1';`}</Script>"
        place = findings("src/page.jsx", code)[0].location
        assert (place.start_line, place.start_column, place.end_column) == (3, 3, 35)

    def test_snippets_are_bounded(self):
        long = "gtag('event', 'a', {\n" + "  a: 1,\n" * 100 + "  email: user.email });"
        assert findings("src/a.js", long)[0].location.snippet.count("\n") < 12
        wide = "/* " + "x" * 900 + " */ document.cookie = 'visitor_id=1'; /* " + "y" * 900 + " */"
        snippet = findings("src/a.js", wide, max_snippet_length=200)[0].location.snippet
        assert len(snippet) <= 201
        assert "visitor_id" in snippet


class TestSecrets:
    def test_no_finding_shows_a_whole_secret(self):
        code = (
            f"gtag('event', 'a', {{ email: user.email, key: '{KEY}' }});\n"
            "gtag('event', 'b', { email: user.email, clientSecret: 'q8ZtW3nLkP5rVx7YbD2sHfJm' });\n"
        )
        shown = json.dumps([finding.as_dict() for finding in findings("src/a.js", code)])
        assert len(findings("src/a.js", code)) == 2
        assert KEY not in shown
        assert KEY[8:20] not in shown
        assert "ZtW3nLkP5rVx7" not in shown

    @each("secret", [
        KEY, "AKIA" + "IOSFODNN7QXWZPLK", "ghp" + "_R3aL9kQz7VbN2mXw5TyU8oPi1JhG4fDsA6cE",
        "xoxb" + "-123456789012-abcdefghij",
        "-----BEGIN " + "PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAwEH\n-----END PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJpc3MiOiJzdXBhYmFzZSJ9.q8ZtW3nLkP5rVx7YbD2s",
        "whsec" + "_q8ZtW3nLkP5rVx7YbD2sHfJm", "sk" + "-proj-q8ZtW3nLkP5rVx7YbD2s",
        "github" + "_pat_11AB2CD3E_q8ZtW3nLkP5rVx7YbD2s", "glpat" + "-q8ZtW3nLkP5rVx7YbD2s",
        "hooks.slack.com" + "/services/T0AB1CD2E/B0FG3HI4J/q8ZtW3nLkP5rVx7YbD2s",
        "SG" + ".q8ZtW3nLkP5rVx7Y.bD2sHfJmR3aL9kQz7VbN2mXw5TyU8oPi", "key" + "-d2b7c9f04e81a6535c0f7be29d14a863",
        "phx" + "_R3aL9kQz7VbN2mXw5TyU8oPi1JhG4fDsA6cE", "EAA" + "R3aL9kQz7VbN2mXw5TyU8oPi1JhG4fDsA6cER3aL9kQz7VbN",
        "shpat" + "_d2b7c9f04e81a6535c0f7be29d14a863", "npm" + "_R3aL9kQz7VbN2mXw5TyU8oPi1JhG4fDsA6cE",
    ])  # fmt: skip
    def test_everything_that_looks_like_a_secret_is_masked(self, secret):
        text = masked(f"before {secret} after")
        assert secret not in text
        assert text.startswith("before ")
        assert text.endswith(" after")
        assert secret[12:] not in text

    def test_a_password_in_a_url_and_in_an_assignment_is_masked(self):
        assert "q8ZtW3" not in masked("postgres://shop:q8ZtW3nLkP5r@db.acme.io/shop")
        assert masked("password: 'q8ZtW3nLkP5r'") == "password: 'q****'"

    def test_a_private_key_without_an_end_is_masked_up_to_the_end(self):
        assert "MIGHAg" not in masked("-----BEGIN " + "RSA PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49")

    def test_truncating_a_snippet_reveals_no_secret(self):
        code = f"const a = '{'x' * 50}'; const key = '{KEY}'; {TRACKER}; const b = '{'y' * 700}';"
        for length in range(20, 260, 7):
            [finding] = findings("src/a.js", code, max_snippet_length=length)
            assert KEY[8:16] not in finding.location.snippet


class TestRank:
    def test_the_most_urgent_findings_come_first_in_a_total_order(self):
        files = [
            ("src/c.html", '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>'),
            ("src/b.html", '<script src="https://embed.tawk.to/1"></script>'),
            ("src/a.js", "document.cookie = 'visitor_id=1';"),
        ]
        ranked = analyze_files((path, code.encode()) for path, code in files).findings
        again = analyze_files((path, code.encode()) for path, code in reversed(files)).findings
        assert [finding.priority for finding in ranked] == sorted(finding.priority for finding in ranked)
        assert ranked[0].rule_id == "session-replay-loaded"
        assert [finding.fingerprint for finding in ranked] == [finding.fingerprint for finding in again]


class TestWire:
    def test_the_json_has_the_fields_of_a_finding(self):
        [finding] = findings("src/a.js", "document.cookie = 'visitor_id=1';")
        wire = finding.as_dict()
        assert wire.keys() == {
            "ruleId", "title", "description", "category", "severity", "priority", "location", "remediation",
            "references", "fingerprint", "content", "ordinal", "shape", "vendorIds", "confidence",
        }  # fmt: skip
        assert wire["location"].keys() == {"path", "startLine", "endLine", "startColumn", "endColumn", "snippet"}
        assert json.loads(json.dumps(wire)) == wire


class TestVersions:
    @each(("wanted", "newest"), [
        ("1.2.3", (1, 2, 3)), ("v1.2.3", (1, 2, 3)), ("=1.2.3", (1, 2, 3)), ("~1.2.3", (1, 2, 999_999)),
        ("^1.2.3", (1, 999_999, 999_999)), ("^0.2.3", (0, 2, 999_999)), ("1.x", (1, 999_999, 999_999)),
        ("1.2.x", (1, 2, 999_999)), ("^1.0.0 || ^2.0.0", (2, 999_999, 999_999)), (">=1.2.3", None), ("*", None),
        ("latest", None), ("workspace:*", None), ("", None), ("1.2.3-beta.1", (1, 2, 3)),
    ])  # fmt: skip
    def test_newest_allowed_returns_the_newest_version_of_a_range(self, wanted, newest):
        assert newest_allowed(wanted) == newest

    def test_missing_parts_of_a_version_are_zero(self):
        assert parse("2") == (2, 0, 0)
        assert parse("next") is None

    @each(("address", "version"), [
        ("https://cdnjs.cloudflare.com/ajax/libs/cookieconsent2/3.1.1/cookieconsent.min.js", "3.1.1"),
        ("https://unpkg.com/vanilla-cookieconsent@2.9.2/dist/x.js", "2.9.2"),
        ("https://unpkg.com/vanilla-cookieconsent@3/dist/x.js", None),
        ("https://unpkg.com/vanilla-cookieconsent/dist/x.js", None),
        ("https://cdn.jsdelivr.net/npm/react@16.0.0/x.js", None),
    ])  # fmt: skip
    def test_a_librarys_version_is_read_from_a_url(self, address, version):
        found = outdated_address(address)
        assert (found[1] if found else None) == version


class TestMissingConsentManager:
    """The finding that nothing in a project asks for consent."""

    TRACKER = ("index.html", b'<script src="https://static.hotjar.com/c/hotjar-1.js"></script>')

    @each(("path", "code"), [
        ("a.html", '<div id="cookie-banner"><button>Accept</button></div>'),
        ("a.html", '<div class="site cookie-notice visible"></div>'),
        ("a.tsx", "export default () => <CookieBanner />;"),
        ("a.svelte", "<script>import Ask from './cookie-consent.svelte'</script>"),
        ("a.blade.php", "@include('cookie-consent::index')"),
        ("a.js", "import '@canonical/cookie-policy';"),
        ("a.css.js", "export default css`\n  #onetrust-consent-sdk { position: fixed; }`;"),
        ("gatsby-config.js", "module.exports = { plugins: [{ resolve: 'gatsby-plugin-acme-onetrust' }] };"),
        ("a.html", "<script>window.cookieconsent_options = {};</script><script src='/js/bar.js'></script>"),
    ])  # fmt: skip
    def test_isnt_reported_if_the_project_has_a_banner(self, path, code):
        found = analyze_files([self.TRACKER, (path, code.encode())]).findings
        assert [it.rule_id for it in found] == ["session-replay-loaded"]

    @pytest.mark.parametrize(("path", "code"), [
        ("a.html", "<p>We value privacy.</p><a href='/cookie-policy'>Our cookie policy</a>"),
        ("a.js", "// cookie-banner is missing\nstart();"),
        ("a.js", "const options = { prompt: 'consent' };"),
    ])  # fmt: skip
    def test_is_reported_if_code_only_speaks_of_cookies_or_consent(self, path, code):
        found = analyze_files([self.TRACKER, (path, code.encode())]).findings
        assert [it.rule_id for it in found] == ["session-replay-loaded", "consent-manager-missing"]


@each(("repository", "found"), [
    ("dyte-io/docs", []), ("someone/dyte-site", []), ("", ["unknown-script-loaded"]),
    ("acme/docs", ["unknown-script-loaded"]), ("body/texts", ["unknown-script-loaded"]),
])  # fmt: skip
def test_a_host_with_the_name_of_the_owner_or_the_project_is_its_own(tmp_path, repository, found):
    page = '<script src="https://cdn.dyte.in/core.js"></script>'
    (tmp_path / "index.html").write_text(page)
    assert [it.rule_id for it in analyze_folder(tmp_path, repository=repository).findings] == found


@each(("repository", "host", "own"), [
    ("acme/my-app", "app.io", False), ("acme/web", "web.com", False), ("acme/scrapers", "rap.io", False),
    ("INN/largo", "inn.org", True), ("afup/web", "afup.org", True), ("acme/openGift", "gift.io", True),
    ("dark-matter-labs/x", "darkmatterlabs.org", True), ("acmewidgets/x", "widgets.io", True),
])  # fmt: skip
def test_a_short_part_of_a_name_and_a_general_word_are_not_the_projects_own(repository, host, own):
    assert is_named_after(host, repository) is own


KINDS = {it.severity + it.does: it for it in catalogue().vendors.values() if it.does and it.category == "marketing"}


@each("vendor", KINDS.values(), ids=lambda it: it.id)
def test_a_vendors_own_words_and_severity_win_over_those_of_its_category(vendor):
    page = f'<script src="https://{vendor.domains[0]}/a.js"></script>'.encode()
    found = analyze_files([("index.html", page)]).findings
    [load] = [it for it in found if it.category == "trackers"]
    assert load.description.startswith(f"{vendor.name} {vendor.does}.")
    assert load.severity == vendor.severity
    assert {it.priority for it in found} == {PRIORITIES[SEVERITIES.index(vendor.severity)]}


def test_a_project_whose_vendors_need_no_consent_has_no_findings():
    hosts = "media.ethicalads.io/a.js", "plausible.io/js/script.js", "js.stripe.com/v3/"
    page = "".join(f'<script src="https://{host}"></script>' for host in hosts).encode()
    assert analyze_files([("index.html", page)]).findings == []


class TestSurroundings:
    """The lines from five before a finding to five after it."""

    def around(self, text: str) -> tuple[int, tuple[str, ...]]:
        finding = next(it for it in findings("src/index.html", text) if "hotjar" in it.location.snippet)
        return finding.location.start_line, finding.location.around

    def test_are_those_of_the_file_without_common_indentation(self):
        tag = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>'
        lines = [f"  <p>{number}</p>" for number in range(1, 21)]
        lines[9] = f"    {tag}"
        start, around = self.around("\r\n".join(lines))
        assert (start, around[0], around[5], around[-1], len(around)) == (10, "<p>5</p>", f"  {tag}", "<p>15</p>", 11)
        assert self.around(tag + "\n<p>2</p>") == (1, (tag, "<p>2</p>"))

    def test_are_cut_and_show_no_secret_that_begins_before_them(self):
        key = ["-----BEGIN " + "PRIVATE KEY-----", *["c2VjcmV0" * 8] * 20, "-----END PRIVATE KEY-----"]
        long = f"<p>{'x' * 300}</p><script src='https://static.hotjar.com/c/hotjar-1.js'></script>{'y' * 300}"
        start, around = self.around("\n".join(["<!--", *key, "-->", "<b>glpat" + "-abcdefghijklmnopqrstu</b>", long]))
        assert (start, len(around), any("c2VjcmV0" in line or "cdefghij" in line for line in around)) == (26, 6, False)
        assert (len(around[-1]), around[-1].startswith("…"), "static.hotjar.com" in around[-1]) == (160, True, True)
