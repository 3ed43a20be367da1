"""Fingerprints identify a finding by its code, wherever it moves in its file and however it is formatted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_testing.in_process import analyze_files

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

    def test_equal_code_in_one_file_has_different_fingerprints(self):
        assert len({print_ for _, print_ in prints("src/a.js", self.CODE * 3)}) == 3

    def test_another_equal_code_keeps_the_existing_fingerprints(self):
        assert set(prints("src/a.js", self.CODE * 2)) < set(prints("src/a.js", self.CODE * 3))

    def test_different_code_in_between_changes_nothing(self):
        two = self.CODE + "f();\ngtag('event', 'b', { phone: user.phone });\n" + self.CODE
        assert set(prints("src/a.js", self.CODE * 2)) < set(prints("src/a.js", two))


def test_path_rule_and_code_each_change_the_fingerprint():
    code = "gtag('event', 'a', { email: user.email });"
    seen = prints("src/a.js", code) + prints("src/b.js", code) + prints("src/a.js", code.replace("'a'", "'b'"))
    assert len({print_ for _, print_ in seen}) == len(seen) == 3


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
        assert len({finding.content for finding in found}) == 1
