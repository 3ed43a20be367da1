"""Whatever a repository contains, the analysis ends, stays within its limits, and reports what it skipped."""

import os
import socket
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_testing.in_process import analyze_files, analyze_folder
from openassent_analysis import Limits
from openassent_analysis.files import Skipped, read
from openassent_analysis.kinds import Kind
from openassent_analysis.templates.dialects import DIALECTS
from tests.support.each import each

# One template of each language.
TEMPLATES = [f"a.{extension}" for extension in {kind: name for name, kind in DIALECTS.items()}.values()]

TRACKER = b"const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
BUNDLED = b"<p>a</p><script>%s</script>"


def skipped(path, content, **limits):
    return dict(analyze_files([(path, content)], Limits(**limits)).skipped)


# Parts of templates, which hypothesis combines in unusual ways.
PIECES = [
    b"{{", b"}}", b"{%", b"%}", b"{% if a %}", b"{% else %}", b"{% endif %}", b"<%", b"%>", b"<% if (a) { %>",
    b"<?php ", b"?>", b"if (a) {", b"}", b"else", b"echo '<script src=\"//hotjar.com\">';", b"<<<A\n", b"@if (a) {",
    b"@if(a)", b"@endif", b"<#if a>", b"</#if>", b"<c:if test='a'>", b"#if(a)", b"#end", b"{if $a}", b"{/if}",
    b"% if a:\n", b"---\n", b"{a && <b>", b"\n  script(src='//hotjar.com')", b"\n  %script{:src => '//hotjar.com'}",
    b"\n- if a\n", b"\n- else", b"\n script.\n  a()", b"\n:javascript\n  a()", b"<p v-if='a'>", b"</p>", b"(", b"'",
    b'"', b"\n", b"\xc3\xa4",
]  # fmt: skip


class TestSkips:
    # tests/test_resources.py has every name, and names that only look like one.
    @each("path", ["node_modules/x/index.js", "dist/app.js", "src/a.test.ts", "js/a.min.js"])
    def test_skips_tests_examples_bundles_and_third_party_code(self, path):
        analysis = analyze_files([(path, TRACKER)])
        assert (analysis.findings, analysis.files_analyzed) == ([], 0)
        assert sum(analysis.skipped.values()) == 1

    @each(("path", "content", "limits", "reason"), [
        ("a.js", TRACKER * 100, {"max_file_bytes": 1000}, "too large"),
        ("a.js", TRACKER, {"max_seconds_per_file": -1}, "too slow"),
        ("a.js", TRACKER.replace(b"\n", b"") * 200, {}, "minified"),
        ("a.html", BUNDLED % (b"function a(b){return b+1};" * 1_000), {}, "minified"),
        ("a.html", BUNDLED % (b"function a(b){return b+1};" * 3_000), {}, "line too long"),
        ("a.rb", b'a = "<p>b</p>"; ' * 5_000, {}, "line too long"),  # source code that writes markup
        ("a.js", b"x=" + b"1+" * 100_000 + b"1", {}, "line too long"),
        *(("a.js", content, {}, "not text") for content in (b"\0" + TRACKER, b"\x7fELF\0\0", b"\xff\xfe\x00")),
        *(("a.js", content, {}, "empty") for content in (b"", b" \n\t\n", b"\xef\xbb\xbf")),
    ])  # fmt: skip
    def test_skips_what_cant_be_analyzed_and_says_why(self, path, content, limits, reason):
        assert skipped(path, content, **limits) == {reason: 1}

    @each(("path", "before", "after"), [
        *(("a.html", b"<html>\n", b"\n" + long + b"\n</html>") for long in (
            b'<svg viewBox="0 0 9 9"><path fill="#fff" d="%s"/></svg>' % (b"M10.5 20l-3 4" * 9_000),
            b'<img src="data:image/png;base64,%s">' % (b"iVBORw0KGgo" * 9_000),
            b"<p>%s</p>" % (b"A long paragraph without a break. " * 3_000),
            b'<script type="application/ld+json">%s</script>' % (b'{"a": "b"}, ' * 1_500),
            b"<script>%s</script>" % (b"function a(b){return b+1};" * 700),
        )),
        *((path, b"", b'<p class="a">b</p>' * 5_000) for path in ("a.html", "a.liquid", "a.php")),
        ("a.html", b'<style>@font-face { src: url("data:font/woff;%s"); }</style>' % (b"d09GRgAB" * 15_000), b""),
    ])  # fmt: skip
    def test_reads_a_page_with_a_long_line_that_is_no_code(self, path, before, after):
        page = before + b'<script src="https://static.hotjar.com/c/hotjar-1.js"></script>' + after
        assert [finding.vendor_ids for finding in analyze_files([(path, page)]).findings[:1]] == [("hotjar",)]

    @pytest.mark.parametrize(("path", "one"), [("a.js", b"["), ("a.ts", b"{"), ("a.py", b"("), ("a.html", b"<b>")])
    def test_skips_code_that_is_nested_too_deep(self, path, one):
        tracker = b'<script src="https://hotjar.com/x.js"></script>' if path == "a.html" else b""
        marks = TRACKER + b"document.cookie = 1; f(send_default_pii=True)\n" + tracker
        assert skipped(path, marks + b"\n".join([one * 100] * 300)) == {"nested too deep": 1}

    @each(("path", "repeated"), [
        ("a.js", b"a@1:\n"), ("a.ts", b"a @ :\n"), ("a.tsx", b"a@@: "), ("a.js", b"a@\n1 :"), ("a.py", b"<!--"),
        ("a.py", b"<!-"), ("a.py", b"!=- "), ("a.py", b"in -"), ("a.py", b"|-\n"),
    ])  # fmt: skip
    def test_skips_invalid_code_that_the_parser_nests(self, path, repeated):
        marks = TRACKER + b"f(send_default_pii=True)\n"
        assert skipped(path, marks + repeated * 500) == {"nested too deep": 1}
        assert skipped("a.html", b"<script>" + marks + b"a@1:\n" * 500 + b"</script>") == {"nested too deep": 1}

    @pytest.mark.parametrize(("path", "ordinary"), [
        ("a.ts", b"class A {\n@Input() a: string = `a@b.test`;\n@Output()\n b: number\n}\n"),
        ("a.js", b'a = { "@type": "Person", email: "a@b.test: c" };\n'),
        ("a.py", b'a = b < -1 or -c\nd = """\n|---|---|\n+---+---+\n======\n"""\n'),
    ])  # fmt: skip
    def test_reads_ordinary_code_with_the_same_signs(self, path, ordinary):
        assert skipped(path, TRACKER + b"\n" + ordinary * 300) == {}

    def test_reads_a_page_with_many_comments_that_never_end(self):
        page = b"<!-- a -->" + b'<script src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
        found = analyze_files([("a.html", page + b"<!--\n" * 20_000)]).findings[0]
        assert (found.vendor_ids, found.location.start_line, found.location.start_column) == (("hotjar",), 1, 11)

    def test_reads_helpers_that_call_each_other(self):
        calls = b"; ".join([b"help%d(() => { done() })"] * 4)
        helpers = (
            b"".join(b"const help%d = (done) => { " % n + calls % ((n + 1,) * 4) + b" };\n" for n in range(30))
            + b"const help30 = (done) => { help0(() => { done() }) };\n"
        )
        assert skipped("a.js", helpers + b"help0(() => { " + TRACKER + b" });\n") == {}


class TestLimits:
    FILES = tuple((f"src/{n}.js", TRACKER) for n in range(10))

    @pytest.mark.parametrize(("limits", "reason"), [
        ({"max_files": 3}, "too many files"),
        ({"max_total_bytes": 3 * len(TRACKER)}, "too many bytes"),
        ({"max_seconds": -1}, "out of time"),
    ])  # fmt: skip
    def test_limits_of_the_scan_end_it_and_are_reported(self, limits, reason):
        analysis = analyze_files(self.FILES, Limits(**limits))
        seen = 0 if reason == "out of time" else 3
        assert analysis.skipped == {reason: 10 - seen}
        assert analysis.skipped_examples[reason][0] == f"src/{seen}.js"
        assert analysis.kinds["JavaScript and TypeScript"] == Kind(seen, 10 - seen)
        assert (analysis.incomplete, analysis.files_seen) == (True, seen)
        assert analysis.uncertain == {f"src/{n}.js" for n in range(seen, 10)}

    def test_files_that_no_rule_reads_do_not_make_a_scan_incomplete(self):
        images = [(f"src/{n}.png", b"1") for n in range(9)]
        analysis = analyze_files([*self.FILES[:3], *images, ("dist/a.js", TRACKER)], Limits(max_files=3))
        assert (analysis.skipped, analysis.incomplete) == ({"build output": 1}, False)
        assert analysis.uncertain == set()

    def test_the_limit_of_findings_keeps_the_most_urgent(self):
        late = ("z.html", b'<script src="https://static.hotjar.com/c/hotjar-1.js"></script>')
        analysis = analyze_files([*self.FILES, late], Limits(max_findings=2))
        assert (len(analysis.findings), analysis.truncated) == (2, True)
        assert "session-replay-loaded" in {finding.rule_id for finding in analysis.findings}
        found = {finding.location.path for finding in analysis.findings}
        assert analysis.uncertain >= {path for path, _ in self.FILES} - found

    def test_findings_per_file_are_limited(self):
        code = b"".join(b"gtag('event', 'e%d', { email: user.email });\n" % n for n in range(30))
        analysis = analyze_files([("src/a.js", code)], Limits(max_findings_per_file=7))
        assert (len(analysis.findings), analysis.truncated, analysis.uncertain) == (7, True, {"src/a.js"})

    def test_examples_of_skipped_files_are_limited(self):
        analysis = analyze_files(((f"dist/{n}.js", TRACKER) for n in range(50)), Limits(max_skipped_examples=2))
        assert analysis.skipped == {"build output": 50}
        assert analysis.skipped_examples == {"build output": ["dist/0.js", "dist/1.js"]}


def test_findings_of_files_that_were_not_analyzed_are_uncertain():
    """A finding in one of them isn't gone because it isn't reported."""
    files = [
        ("src/good.js", TRACKER), ("src/empty.js", b""), ("src/binary.js", b"\0"), ("src/large.js", TRACKER * 99),
        ("src/slow.js", TRACKER), ("dist/built.js", TRACKER), ("src/notes.txt", b"text"),
    ]  # fmt: skip
    limits = Limits(max_file_bytes=20 * len(TRACKER))
    assert analyze_files(files, limits).uncertain == {"src/binary.js", "src/large.js"}
    assert analyze_files(files[4:5], Limits(max_seconds_per_file=-1)).uncertain == {"src/slow.js"}


class TestFolders:
    def test_links_pipes_and_sockets_are_not_opened(self, tmp_path):
        outside = tmp_path / "outside.js"
        outside.write_bytes(TRACKER)
        root = tmp_path / "root"
        root.mkdir()
        (root / "link.js").symlink_to(outside)
        (root / "folder").symlink_to(tmp_path)
        (root / "loop").symlink_to(root)
        (root / "gone.js").symlink_to(root / "nothing.js")
        os.mkfifo(root / "pipe.js")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(root / "socket.js"))
            analysis = analyze_folder(root)
        assert analysis.findings == []
        assert analysis.skipped == {"link": 4, "special file": 2}

    def test_a_file_that_has_become_a_link_or_a_pipe_is_not_read(self, tmp_path):
        """After it was listed: reading a pipe would wait forever."""
        (tmp_path / "outside.js").write_bytes(TRACKER)
        (tmp_path / "link.js").symlink_to("outside.js")
        os.mkfifo(tmp_path / "pipe.js")
        for name, reason in (("link.js", "unreadable"), ("pipe.js", "special file")):
            with pytest.raises(Skipped, match=reason):
                read(tmp_path / name, 1_000)

    def test_a_skipped_folder_is_not_entered(self, tmp_path):
        (tmp_path / "node_modules" / "a").mkdir(parents=True)
        (tmp_path / "node_modules" / "a" / "a.js").write_bytes(TRACKER)
        (tmp_path / "src").mkdir()
        (tmp_path / "src" / "a.js").write_bytes(TRACKER)
        analysis = analyze_folder(tmp_path)
        assert analysis.skipped_examples == {"vendored": ["node_modules/"]}
        assert {finding.location.path for finding in analysis.findings} == {"src/a.js"}

    def test_a_folder_and_its_files_give_the_same_result(self, tmp_path):
        files = {"a.js": TRACKER, "sub/b.html": b'<script src="https://cdn.mxpnl.com/m.js"></script>'}
        (tmp_path / "sub").mkdir()
        for path, content in files.items():
            (tmp_path / path).write_bytes(content)
        assert analyze_folder(tmp_path).findings == analyze_files(files.items()).findings

    def test_undecodable_names_dont_matter(self, tmp_path):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.js")).write_bytes(TRACKER)
        assert analyze_folder(tmp_path).findings[0].location.path.encode()


@settings(max_examples=150, deadline=None)
@given(
    path=st.sampled_from(["a.js", "a.ts", "a.tsx", "a.py", "package.json", "yarn.lock", *TEMPLATES]),
    content=st.binary(max_size=400) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join),
    around=st.sampled_from([TRACKER, b'<script src="//hotjar.com">', b"document.cookie = `_ga=", b'{"dependencies":']),
)
def test_no_bytes_make_the_analysis_fail(path, content, around):
    analyze_files([(path, around + content), (path, content + around + content)])


@each("content", [
    b"[" * 100_000,
    b'{"dependencies":{"klaro":' * 10_000, b'{"dependencies": [1]}', b"[]", b'{"dependencies":{"klaro":1}}',
    b'{"dependencies":{"klaro":"workspace:*"}}', b'{"dependencies":{"klaro":"99999999999999999999.1"}}',
])  # fmt: skip
def test_no_manifest_makes_the_analysis_fail(content):
    assert analyze_files([("package.json", content)]).findings == []


class Many:
    """Files that are made when they are read, as often as they are."""

    def __init__(self, count, content, first=()):
        self.count, self.content, self.first = count, content, first

    def __iter__(self):
        yield from self.first
        yield from ((f"src/{n}.js", self.content) for n in range(self.count))


def peak_memory(files):
    tracemalloc.start()
    analysis = analyze_files(files)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert analysis.files_analyzed == len(list(files))
    return most


def test_holds_one_file_at_a_time():
    def peak(count):
        return peak_memory(Many(count, TRACKER + b"f(1);\n" * 3_000))

    peak(1)
    assert peak(30) < 1.5 * peak(3)


def test_memory_stays_small_in_a_project_of_many_small_files():
    kinds = [
        ("tags.js", b"export function start() {" + TRACKER + b"}"),
        ("run.js", b"import { start } from './tags';\nexport function run() { start() }\n" + b"// filler\n" * 100),
        ("page.html.twig", b"{% include 'tags.html.twig' %}<p>{{ text }}</p>"),
        ("tags.html.twig", b"{% if on %}<script src='https://static.hotjar.com/c/hotjar-1.js'></script>{% endif %}"),
        *((f"{n}.js", b"export const a = 1;\n" * 3) for n in range(56)),
    ]

    def peak(folders):
        return peak_memory([(f"src/{n}/{name}", content) for n in range(folders) for name, content in kinds])

    peak(1)
    assert peak(50) < peak(5) + 2_700 * 1_000
