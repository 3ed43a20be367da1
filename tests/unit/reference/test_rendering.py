"""Markdown and code as HTML: highlighted, linked, and never a tag that the text brought along."""

import re

import pytest

from scripts.reference.rendering import Prose, code

PROSE = Prose({"GET /v1/me": "getMe"})
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "&lt;b&gt;",
    "`<b>`",
    "[a](javascript:alert(1))",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_a_tag(text: str):
    for shown in (PROSE.blocks(text), PROSE.line(text), code(text, "json"), code(text, "sh"), code(text, "text")):
        assert set(re.findall(r"<(\w+)", shown)) <= {"p", "code", "span"}
        assert "javascript:" not in re.sub(r"\[a\]\(javascript:alert\(1\)\)", "", re.sub(r"<[^>]+>", "", shown))


def test_json_is_highlighted_and_reads_the_same():
    text = '{\n  "a\\"b": [1, -2.5e3, true, null, "x: \\"y\\""]\n}'
    shown = code(text, "json")
    assert shown.count('class="n"') == 1
    assert shown.count('class="l"') == 4
    assert shown.count('class="t"') == 1
    assert re.sub(r"<[^>]+>", "", shown) == text


def test_a_command_is_highlighted_and_reads_the_same():
    text = "curl -X POST 'https://a.test?b' \\\n  -H \"Authorization: Bearer $TOKEN\""
    shown = code(text, "sh")
    assert re.sub(r"<[^>]+>", "", shown) == text
    assert shown.startswith('<span class="n">curl</span> <span class="l">-X</span>')


def test_an_operation_that_is_named_is_a_link_to_it():
    assert '<a href="#getMe"><code>GET /v1/me</code></a>' in PROSE.line("See `GET /v1/me`.")
    assert "<a" not in PROSE.line("See `GET /v1/you`.")


def test_a_link_holds_no_other_link():
    shown = PROSE.line("[`GET /v1/me`](https://a.test) and `GET /v1/me`")
    assert shown.count("<a ") == 2
    assert '<a href="https://a.test"><code>GET /v1/me</code></a>' in shown


def test_a_cell_brings_the_heading_of_its_column():
    shown = PROSE.blocks("| A | `b` |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |")
    assert re.findall(r'<td data-label="(\w)"><div>(\d)</div></td>', shown) == [
        ("A", "1"),
        ("b", "2"),
        ("A", "3"),
        ("b", "4"),
    ]
    assert "style=" not in shown


def test_a_heading_can_be_linked_at():
    assert PROSE.blocks("## Your first request") == '<h2 id="your-first-request">Your first request</h2>'
    assert PROSE.headings("# A\n\n## B\n\n### C\n\n## D") == ["B", "D"]
