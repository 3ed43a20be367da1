"""A comment with a rule and a reason suppresses the finding on its line or on the next line of code, and counts it."""

import pytest

from analysis_testing.in_process import analyze_files
from tests.support.each import each

_TAG = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>'
_RULE = "session-replay-loaded"
_WORDS = f"assent-ignore: {_RULE} -- The visitor was told"
_START = "const s = document.createElement('script'); s.src = '//static.hotjar.com/c/a.js'; document.head.append(s)"

# By name: the path, and a text with a comment.
SILENT = {
    "HTML, before": ("a.html", f"<p>a</p>\n<!-- {_WORDS} -->\n{_TAG}"),
    "HTML, at the end of the line": ("a.html", f"{_TAG} <!-- {_WORDS} -->"),
    "HTML, before other comments and blank lines": ("a.html", f"<!-- {_WORDS} -->\n\n<!-- Hotjar -->\n{_TAG}"),
    "HTML, a comment of several lines": ("a.html", f"<!--\n  {_WORDS}\n  See DPO-12\n-->\n{_TAG}"),
    "a script in a page": ("a.html", f"<script>\n// {_WORDS}\n{_START}\n</script>"),
    "a page in a string": ("a.js", f"element.innerHTML = `\n<!-- {_WORDS} -->\n{_TAG}`"),
    "JavaScript, before": ("a.js", f"// {_WORDS}\n{_START}"),
    "JavaScript, at the end of the line": ("a.js", f"{_START} // {_WORDS}"),
    "JavaScript, a block": ("a.js", f"/* {_WORDS} */\n{_START}"),
    "JavaScript, a block of several lines": ("a.js", f"/**\n * {_WORDS}\n */\n{_START}"),
    "TypeScript": ("a.ts", f"// {_WORDS}\n{_START}"),
    "JSX": ("a.jsx", f"export default () => <head>\n{{/* {_WORDS} */}}\n{_TAG}</head>"),
    "TSX": ("a.tsx", f"export default () => <head>\n{{/* {_WORDS} */}}\n{_TAG}</head>"),
    "Vue": ("a.vue", f"<template>\n<p/>\n</template>\n<script>\n// {_WORDS}\n{_START}\n</script>"),
    "Svelte": ("a.svelte", f"<svelte:head>\n<!-- {_WORDS} -->\n{_TAG}\n</svelte:head>"),
    "Astro": ("a.astro", f"---\nconst a = 1;\n---\n<head>\n<!-- {_WORDS} -->\n{_TAG}</head>"),
    "Astro, an expression": ("a.astro", f"---\nconst a = 1;\n---\n<head>\n{{/* {_WORDS} */}}\n{_TAG}</head>"),
    "ERB": ("a.erb", f"<%# {_WORDS} %>\n{_TAG}"),
    "EEx": ("a.heex", f"<%!-- {_WORDS} --%>\n{_TAG}"),
    "Blade": ("a.blade.php", f"{{{{-- {_WORDS} --}}}}\n{_TAG}"),
    "Twig": ("a.twig", f"{{# {_WORDS} #}}\n{_TAG}"),
    "Jinja": ("a.jinja2", f"{{#- {_WORDS} -#}}\n{_TAG}"),
    "Liquid": ("a.liquid", f"{{% comment %}} {_WORDS} {{% endcomment %}}\n{_TAG}"),
    "Liquid, several lines": ("a.liquid", f"{{% comment %}}\n  {_WORDS}\n{{% endcomment %}}\n{_TAG}"),
    "Liquid, on one line": ("a.liquid", f"{{% # {_WORDS} %}}\n{_TAG}"),
    "Handlebars": ("a.hbs", f"{{{{!-- {_WORDS} --}}}}\n{_TAG}"),
    "Handlebars, short": ("a.hbs", f"{{{{! {_WORDS} }}}}\n{_TAG}"),
    "Go": ("a.gohtml", f"{{{{/* {_WORDS} */}}}}\n{_TAG}"),
    "Razor": ("a.cshtml", f"@* {_WORDS} *@\n{_TAG}"),
    "PHP": ("a.php", f"<?php // {_WORDS}\n?>\n{_TAG}"),
    "PHP, on one line": ("a.php", f"<?php /* {_WORDS} */ ?>\n{_TAG}"),
    "Smarty": ("a.tpl", f"{{* {_WORDS} *}}\n{_TAG}"),
    "FreeMarker": ("a.ftl", f"<#-- {_WORDS} -->\n{_TAG}"),
    "JSP": ("a.jsp", f"<%-- {_WORDS} --%>\n{_TAG}"),
    "Pug": ("a.pug", f"html\n  head\n    //- {_WORDS}\n    script(src='https://static.hotjar.com/c/hotjar-1.js')"),
    "Pug, several lines": ("a.pug", f"html\n  head\n    //-\n      {_WORDS}\n    script(src='https://static.hotjar.com/c/hotjar-1.js')"),
    "Haml": ("a.haml", f"%html\n  %head\n    -# {_WORDS}\n    %script{{src: 'https://static.hotjar.com/c/hotjar-1.js'}}"),
    "Slim": ("a.slim", f"html\n  head\n    / {_WORDS}\n    script src='https://static.hotjar.com/c/hotjar-1.js'"),
    "several rules": ("a.html", f"<!-- assent-ignore: analytics-loaded, {_RULE} -- Both are known -->\n{_TAG}"),
}  # fmt: skip

# By name: the path, and a text whose finding stays.
LOUD = {
    "another rule": ("a.html", f"<!-- assent-ignore: analytics-loaded -- A reason -->\n{_TAG}"),
    "a line between": ("a.html", f"<!-- {_WORDS} -->\n<p>Text</p>\n{_TAG}"),
    "at the end of another line": ("a.html", f"<p>Text</p> <!-- {_WORDS} -->\n{_TAG}"),
    "the line after": ("a.html", f"{_TAG}\n<!-- {_WORDS} -->"),
    "visible text": ("a.html", f"<p>// {_WORDS}</p>\n<p>\n# {_WORDS}\n{_TAG}</p>"),
    "a comment of another language": ("a.erb", f"{{# {_WORDS} #}}\n{_TAG}"),
    "a string": ("a.js", f"log(`// {_WORDS}`); {_START}"),
    "a string of several lines": ("a.js", f"log(`\n// {_WORDS}\n`); {_START}"),
    "text of JSX": ("a.jsx", f"export default () => <p>// {_WORDS}\n{_TAG}</p>"),
    "not at the beginning of the comment": ("a.html", f"<!-- To silence it, write {_WORDS} -->\n{_TAG}"),
    "text of Twig": ("a.twig", f"<p>{{{{! {_WORDS} }}}}\n{_TAG}</p>"),
}  # fmt: skip


def scan(path, text):
    return analyze_files([(path, text.encode())])


@each("case", SILENT.values(), ids=SILENT)
def test_suppresses_the_finding_with_its_reason(case):
    path, text = case
    without = scan(path, text.replace("assent-ignore", "assent"))
    assert _RULE in {it.rule_id for it in without.findings}, path
    found = scan(path, text)
    assert _RULE not in {it.rule_id for it in found.findings}, (path, found.findings)
    reasons = {it.suppression for it in found.suppressed if it.finding.rule_id == _RULE}
    assert {it.kind for it in reasons} == {"comment"}
    assert {it.reason for it in reasons} <= {"The visitor was told", "Both are known"}
    assert found.notes == [], path


@each("case", LOUD.values(), ids=LOUD)
def test_anything_else_leaves_the_finding(case):
    path, text = case
    found = scan(path, text)
    assert _RULE in {it.rule_id for it in found.findings}, path
    assert not found.suppressed


def test_a_comment_in_settings_suppresses_what_is_on_the_next_line():
    text = "# assent-ignore: site-generator-tracker -- Only on the preview\ngoogle_analytics: UA-98765432-1\n"
    found = scan("_config.yml", text)
    assert not found.findings
    assert [it.finding.rule_id for it in found.suppressed] == ["site-generator-tracker"]


def test_a_finding_in_python_is_suppressed_by_a_comment_and_not_by_a_docstring():
    rule, code = "tracker-in-markup-of-code", f"html = '{_TAG}'\nHttpResponse(html)\n"
    words = f"assent-ignore: {rule} -- Only for staff"
    assert rule not in {it.rule_id for it in scan("a.py", f"# {words}\n{code}").findings}
    assert rule in {it.rule_id for it in scan("a.py", f'"""\n{words}\n"""\n{code}').findings}


class TestNotes:
    @pytest.mark.parametrize(
        ("written", "said"),
        [
            (_RULE, "without a reason"),
            (f"{_RULE} --", "without a reason"),
            ("no-such-rule -- A reason", "no-such-rule, which isn't a rule"),
            ("-- A reason", "names no rule"),
        ],
    )
    def test_say_why_a_comment_has_no_effect(self, written, said):
        found = scan("a.html", f"<p></p>\n<!-- assent-ignore: {written} -->\n{_TAG}")
        assert _RULE in {it.rule_id for it in found.findings}
        [note] = found.notes
        assert (note.path, note.line) == ("a.html", 2)
        assert said in note.text

    def test_say_where_the_finding_is_if_the_comment_is_at_a_later_tag_of_the_vendor(self):
        found = scan("a.html", f"{_TAG}\n<p></p>\n{_TAG} <!-- {_WORDS} -->")
        assert _RULE in {it.rule_id for it in found.findings}
        [note] = found.notes
        assert (note.line, note.text[-7:]) == (3, "line 1.")

    def test_say_nothing_of_a_comment_that_suppresses(self):
        assert not scan("a.html", f"{_TAG} <!-- {_WORDS} -->\n{_TAG}").notes


def test_without_unsuppressed_trackers_no_consent_manager_is_missing():
    missing = "consent-manager-missing"
    assert missing in {it.rule_id for it in scan("a.html", _TAG).findings}
    assert not scan("a.html", f"{_TAG} <!-- {_WORDS} -->").findings
    found = scan("a.html", f"{_TAG} <!-- assent-ignore: {missing} -- Asked on the server -->")
    assert [it.rule_id for it in found.findings] == [_RULE]
    assert [it.finding.rule_id for it in found.suppressed] == [missing]
