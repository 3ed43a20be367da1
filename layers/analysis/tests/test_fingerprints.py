"""A fingerprint identifies a finding by its code, and an identity keeps it over renames and edits."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_testing.in_process import analyze_files
from openassent_analysis import Finding, Location
from openassent_analysis.fingerprints import Fingerprints
from openassent_analysis.identities import identify
from openassent_analysis.judgment import MISSING
from openassent_analysis.selection import EVERYTHING
from tests.support.each import each

# Per language: a finding in pieces that a formatter may separate with any whitespace, and the comment syntax.
PIECES = {
    "src/a.js": (
        ["const", " s", "=", "document", ".createElement(", "'script'", ")", ";", "s", ".src", "=",
         "'https://static.hotjar.com/c/hotjar-1.js'", ";"],
        ("/* {} */", "// {}\n"),
    ),
    "src/a.ts": (
        ["gtag", "(", "'event'", ",", "'sign_up'", ",", "{", "email", ":", "user", ".email", "}", ")", ";"],
        ("/* {} */", "// {}\n"),
    ),
    "app/a.py": (
        ["import posthog\nposthog.capture(", "user.email", ",", "'joined'", ")", "\n"],
        (),
    ),
}  # fmt: skip
SPACE = st.sampled_from(["", " ", "\n", "  \n\t", " "])
WORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "Zs")), max_size=20)


def findings(path, code):
    return analyze_files([(path, code.encode())]).findings


def prints(path, code):
    return sorted((f.rule_id, f.fingerprint) for f in findings(path, code) if f.rule_id != "consent-manager-missing")


@pytest.mark.parametrize("path", PIECES)
@settings(max_examples=60, deadline=None)
@given(given_data=st.data())
def test_formatting_and_comments_change_no_fingerprint(path, given_data):
    pieces, comments = PIECES[path]
    plain = prints(path, " ".join(pieces))
    assert plain
    draw = given_data.draw
    gap = SPACE if not path.endswith(".py") else st.sampled_from(["", " ", "  "])
    written = []
    for piece in pieces:
        text = piece
        if piece.startswith("'") and draw(st.booleans()):
            text = f'"{piece[1:-1]}"'
        written.append(text)
        if piece == "const":
            continue  # "consts" would be another word
        written.append(draw(gap))
        if comments and draw(st.booleans()) and draw(st.booleans()):
            written.append(draw(st.sampled_from(comments)).format(draw(WORDS)))
    assert prints(path, "".join(written)) == plain


@pytest.mark.parametrize("path", PIECES)
@settings(max_examples=40, deadline=None)
@given(lines=st.lists(st.sampled_from(["", "x = 1", "y = f(2)", "z = [1, 2]"]), max_size=30))
def test_preceding_lines_change_no_fingerprint(path, lines):
    code = " ".join(PIECES[path][0])
    assert prints(path, "".join(f"{line}\n" for line in lines) + code) == prints(path, code)


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(WORDS, max_size=10), quote=st.sampled_from(["'", '"', ""]), gap=st.sampled_from([" ", "\n   "]))
def test_surrounding_markup_changes_no_fingerprint(lines, quote, gap):
    before = "".join(f"<p>{line}</p><!-- {line} -->\n" for line in lines)
    tag = f"<script{gap}async{gap}src={quote}https://cdn.mxpnl.com/mixpanel.js{quote}></script>"
    plain = '<script async src="https://cdn.mxpnl.com/mixpanel.js"></script>'
    assert prints("index.html", before + tag) == prints("index.html", plain)


class TestOrder:
    CODE = "gtag('event', 'a', { email: user.email });\n"

    def test_another_equal_code_keeps_the_existing_fingerprints(self):
        assert set(prints("src/a.js", self.CODE * 2)) < set(prints("src/a.js", self.CODE * 3))

    def test_different_code_in_between_changes_nothing(self):
        two = self.CODE + "f();\ngtag('event', 'b', { phone: user.phone });\n" + self.CODE
        assert set(prints("src/a.js", self.CODE * 2)) < set(prints("src/a.js", two))


def test_known_fingerprints_never_change():
    """Stored findings are matched by fingerprint: if they changed, each scan would report all findings as new."""
    code = "gtag('event', 'a', { email: user.email });"
    assert prints("src/a.js", code) == [("personal-data-in-event", "d5cf42fc2636e9e57daf84c7d4b46938")]


class TestContent:
    def test_is_the_same_in_another_file_and_differs_for_other_code(self):
        code = "document.cookie = 'visitor_id=1';"
        [here], [there] = findings("src/a.js", code), findings("lib/b.ts", code)
        [other] = findings("src/a.js", code.replace("visitor_id", "tracking_id"))
        assert here.content == there.content != other.content
        assert len({here.fingerprint, there.fingerprint, other.fingerprint}) == 3

    def test_equal_code_in_a_file_has_an_ordinal(self):
        found = findings("src/a.js", "document.cookie = 'visitor_id=1';\n" * 3)
        assert [finding.ordinal for finding in found] == [0, 1, 2]
        assert (len({it.content for it in found}), len({it.fingerprint for it in found})) == (1, 3)


def equal_findings(path: str, code: str = "code", count: int = 1) -> list[Finding]:
    """Returns equal findings in one file."""
    prints = Fingerprints(path)
    place = Location(path, 1, 1, 1, 9, code)
    texts = ("title", "why", "trackers", "high", "P1")
    return [Finding("rule", *texts, place, "fix", (), *prints.take("rule", code, ("rule", code))) for _ in range(count)]


@dataclass(frozen=True)
class Recorded:
    """A finding as a repository's history records it."""

    fingerprint: str
    content: str
    ordinal: int
    rule_id: str
    shape: str
    path: str
    place: str | None
    gone: object = None


class Repository:
    """Identifies the findings of one scan after another, and records them."""

    def __init__(self) -> None:
        self.history: dict[str, Recorded] = {}

    def scan(self, *found: Finding) -> dict[str, list[str]]:
        """Returns the identities by path, in the order of the findings."""
        named = identify(found, self.history, lambda _: True)
        current = {
            named[finding.fingerprint]: Recorded(
                fingerprint=named[finding.fingerprint],
                content=finding.content,
                ordinal=finding.ordinal,
                rule_id=finding.rule_id,
                shape=finding.shape,
                path=finding.location.path,
                place=finding.fingerprint if finding.fingerprint != named[finding.fingerprint] else None,
            )
            for finding in found
        }
        assert len(current) == len(found), "two findings share an identity"
        self.history = {name: replace(known, gone=True) for name, known in self.history.items()} | current
        by_path: dict[str, list[str]] = {}
        for finding in found:
            by_path.setdefault(finding.location.path, []).append(named[finding.fingerprint])
        return by_path


def test_equal_code_in_a_renamed_file_keeps_its_order():
    repository = Repository()
    before = repository.scan(*equal_findings("a.js", count=3))
    assert repository.scan(*equal_findings("b.js", count=3))["b.js"] == before["a.js"]


def test_the_most_similar_path_continues_a_finding():
    repository = Repository()
    olds = ["web/src/a.js", "web/src/b.js", "lib/c.js"]
    before = repository.scan(*(finding for path in olds for finding in equal_findings(path)))
    news = {"app/web/src/a.js": "web/src/a.js", "lib/d.js": "lib/c.js", "other/b.js": "web/src/b.js"}
    after = repository.scan(*(finding for path in news for finding in equal_findings(path)))
    assert after == {new: before[old] for new, old in news.items()}


def test_another_rule_or_code_is_another_finding():
    repository = Repository()
    before = repository.scan(*equal_findings("a.js", "one"))
    assert repository.scan(*equal_findings("b.js", "two"))["b.js"] != before["a.js"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), max_size=5), max_size=8))
def test_no_two_findings_ever_share_an_identity_and_the_order_of_findings_is_irrelevant(trees):
    one, other = Repository(), Repository()
    for tree in trees:
        found = [finding for path, count in tree.items() for finding in equal_findings(path, count=count)]
        named = one.scan(*found)
        assert other.scan(*sorted(found, key=lambda it: it.fingerprint)).keys() == named.keys()
        assert other.history == one.history
        count = sum(tree.values())
        assert one.scan(*found) == named, "an unchanged tree keeps its identities"
        assert other.scan(*found) == named
        assert sum(not known.gone for known in one.history.values()) == count


def test_only_unread_files_that_would_be_analyzed_are_uncertain():
    paths = ("src/a.js", "CLAUDE.md", "node_modules/.bin/x.js", "link")
    assert [path for path in paths if EVERYTHING.reads(path)] == ["src/a.js"]


# Edits that people make to a finding's code: before and after.
EDITS = {
    "another measurement id": (
        '<script src="https://www.googletagmanager.com/gtag/js?id=G-ABC123"></script>',
        '<script src="https://www.googletagmanager.com/gtag/js?id=G-XYZ789"></script>',
    ),
    "an attribute more": (
        '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>',
        '<script defer src="https://static.hotjar.com/c/hotjar-1.js"></script>',
    ),
    "an option more": (
        "<script>gtag('event', 'sign_up', { email: user.email });</script>",
        "<script>gtag('event', 'sign_up', { email: user.email, plan: 'pro' });</script>",
    ),
    "another lifetime of a cookie": (
        "<script>document.cookie = 'visitor_id=' + id + '; max-age=99999999';</script>",
        "<script>document.cookie = 'visitor_id=' + id + '; max-age=88888888; secure';</script>",
    ),
}


@each(("before", "after"), EDITS.values(), ids=EDITS)
@each("path", ["index.html", "moved/index.html"], ids=["in place", "while it moves"])
def test_an_edited_finding_keeps_its_identity(path, before, after):
    repository = Repository()
    found = repository.scan(*analyze_files([("index.html", before.encode())]).findings)
    assert found["index.html"]
    again = repository.scan(*analyze_files([(path, after.encode())]).findings)
    assert set(again[path]) == set(found["index.html"])


def test_another_vendor_is_another_finding():
    repository = Repository()
    page = '<script src="https://{}"></script>'
    before = repository.scan(*analyze_files([("a.html", page.format("static.hotjar.com/h.js").encode())]).findings)
    after = repository.scan(*analyze_files([("a.html", page.format("cdn.mxpnl.com/m.js").encode())]).findings)
    [gone] = [it for it in before["a.html"] if repository.history[it].rule_id != MISSING]
    assert gone not in after["a.html"]
