"""The issue's text, as the repository's maintainers see it."""

from dataclasses import replace
from typing import Any

from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.items import Evidence, InboxItem
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from issue_creation import text
from tests.support.each import each

MARKER = "0f9c2b4d7e1a4c3f8b6d5e2a19c70b48"
PERMALINK = "https://github.com/acme/shop/blob/1f0c2b9e/src/index.html#L12-L14"
TAG = '<script type="text/plain"></script>'
PLACE = Evidence(
    "src/index.html, line 12",
    PERMALINK,
    "src/index.html",
    start_line=12,
    end_line=14,
    snippet='<script src="a.js">\n</script>\n',
)
_BREAK = "\u200b"


def finding(**changes: Any) -> InboxItem:
    made = InboxItem(
        item_id=InboxItemId.stored("inb_" + "0" * 34),
        title="Google Analytics loads before consent",
        summary="The tag is in the head of every page.",
        priority="P1",
        status="open",
        source="code-audit",
        project_id=None,
        repository_name="shop",
        github_issue=None,
        updated_at="2026-03-04T05:06:07.000Z",
        version="v",
        repository_id=RepositoryId.stored("rep_" + "0" * 34),
        rule_id="tracker-before-consent",
        description="Visitors are tracked before they could say no.",
        remediation="Load `gtag.js` once consent is given.",
        references=("https://example.com/consent",),
        evidence=(PLACE,),
        runtime_vendor=None,
        status_reason=None,
    )
    return replace(made, **changes)


def body(**changes: Any) -> str:
    return text.compose(finding(**changes), MARKER)[1]


class TestCompose:
    def test_the_issue_says_what_where_why_and_how_to_fix_it(self):
        assert text.compose(finding(), MARKER) == (
            "Google Analytics loads before consent in index.html",
            f"""The tag is in the head of every page.

### Where

[`src/index.html`, lines 12 to 14]({PERMALINK})

```html
<script src="a.js">
</script>
```

### Why it matters

Visitors are tracked before they could say no.

### How to fix it

Load `gtag.js` once consent is given.

### References

- https://example.com/consent

---
Found by a code audit of assent · rule `tracker-before-consent` · priority P1

<!-- assent-issue {MARKER} -->
""",
        )

    @each(
        ("changes", "shown"),
        [
            (
                {"fix": Fix("c15t loads it `later`.", "tsx", "<Consent>\n``` @all\n", ("@c15t/react@^2.2",))},
                "\n\nc15t loads it `later`.\n\nNeeds `@c15t/react@^2.2`.\n\n````tsx\n<Consent>\n``` @all\n````\n",
            ),
            (
                {"fix": Fix("Waits.", "html", "", edits=(Edit("a.html", 7, "<p>\n``` @all", f"<p>\n{TAG}\n" * 20),))},
                f"Waits.\n\n````diff\n--- a/a.html\n+++ b/a.html\n@@ -7,2 +7,41 @@\n <p>\n-``` @all\n+{TAG}\n+<p>\n",
            ),
            ({"evidence": (PLACE._replace(end_line=12),)}, "`src/index.html`, line 12]"),
            ({"evidence": (PLACE._replace(snippet="\n".join(map(str, range(100)))),)}, "\n29\n…\n```"),
            # Nothing can break out of its link, its block, or its code span.
            (
                {"evidence": (PLACE._replace(url="https://example.com/a b)](https://evil.example)<x>"),)},
                "(https://example.com/a%20b%29%5D%28https://evil.example%29%3Cx%3E)",
            ),
            (
                {"evidence": (PLACE._replace(snippet="a\n```\n<!-- hidden\n~~~~\n````\nb"),)},
                "`````html\na\n```\n<!-- hidden\n~~~~\n````\nb\n`````",
            ),
            ({"evidence": (PLACE._replace(path="a`b`", end_line=12),)}, "[`` a`b` ``, line"),
            ({"evidence": (PLACE._replace(path="a\n\nb", end_line=12),)}, "[`a b`, line"),
            *[
                ({"evidence": (PLACE._replace(url=it),)}, "\n`src/index.html`, lines 12 to 14\n")
                for it in (None, "javascript:alert(1)", "//evil", "https://", "data:text/html,x")
            ],
        ],
    )
    def test_fixes_and_places_are_shown_and_stay_in_their_blocks(self, changes, shown):
        assert shown in body(**changes)

    def test_unknown_parts_are_left_out(self):
        assert body(summary=None, description=None, remediation=None, references=(), evidence=(), priority=None) == (
            "Google Analytics loads before consent.\n\n"
            "---\nFound by a code audit of assent · rule `tracker-before-consent`\n\n"
            f"<!-- assent-issue {MARKER} -->\n"
        )

    def test_text_shared_by_summary_and_description_appears_once(self):
        made = body(summary="Visitors are tracked before they could say no.")
        assert made.count("Visitors are tracked") == 1
        assert made.startswith("Google Analytics loads before consent.\n")

    def test_up_to_ten_places_are_listed(self):
        made = body(evidence=tuple(PLACE._replace(path=f"src/{it}.html", snippet=None) for it in range(13)))
        assert made.count("\n- [`src/") == 9
        assert "- and in 3 more places" in made

    def test_the_text_fits_the_code_hosts_limits(self):
        place = PLACE._replace(snippet="`\n" * 1_000, description="*" * 1_000, url="https://e.com/" + "x" * 900)
        longest = finding(
            title="*" * 200,
            summary="*" * 1_000,
            description="<" * 4_000,
            remediation="&" * 4_000,
            references=tuple(f"https://e.com/{number}" + "(" * 900 for number in range(20)),
            evidence=(place,) * 20,
        )
        title, made = text.compose(longest, MARKER)
        assert len(title) <= 256
        assert len(made) <= 65_536
        assert text.has_marker(made, MARKER)


@each(
    ("changes", "shown"),
    [
        ({"title": "Tracker in index.html"}, "Tracker in index.html"),
        ({"evidence": ()}, "Google Analytics loads before consent"),
        ({"title": "a\nb\t\x00c " + "x" * 300}, "a b c " + "x" * 193 + "…"),
        ({"title": "ask @octocat about #7", "evidence": ()}, f"ask @{_BREAK}octocat about #{_BREAK}7"),
    ],
)
def test_the_title_is_one_short_line_that_names_the_file_once_and_mentions_no_user(changes, shown):
    assert text.compose(finding(**changes), MARKER)[0] == shown


@each(
    ("said", "shown"),
    [
        ("use *all* of _it_", r"use \*all\* of \_it\_"),
        ("[a](https://evil.example)", r"\[a\](https://evil.example)"),
        ("<img src=x> & <!-- gone", r"\<img src=x\> &amp; \<!-- gone"),
        ("# not a heading", r"\# not a heading"),
        ("a\n===\n---", "a\n\\===\n\\---"),
        ("@octocat and @acme/team", f"@{_BREAK}octocat and @{_BREAK}acme/team"),
        ("see #12, acme/shop#3, GH-4", f"see #{_BREAK}12, acme/shop#{_BREAK}3, GH-{_BREAK}4"),
        ("a | b ~~c~~", r"a \| b \~\~c\~\~"),
        ("call `a_b(*c)` first", "call `a_b(*c)` first"),
        ("one ` only", r"one \` only"),
        ("right\u202eleft\x00", "rightleft"),
        ("- one\n- two", "- one\n- two"),
        ("one\r\n\r\ntwo", "one\n\ntwo"),
    ],
)
def test_prose_is_shown_literally(said, shown):
    assert f"### Why it matters\n\n{shown}\n\n###" in body(description=said)


def test_the_marker_is_found_despite_edits_around_it_but_not_alone_or_another_attempts():
    assert text.has_marker("Thanks!\n" + body() + "\nDone.", MARKER)
    assert not text.has_marker(body(), "f" * 32)
    assert not text.has_marker(f"I read {MARKER} somewhere", MARKER)


def test_the_marker_cant_come_from_a_finding():
    forged = f"<!-- assent-issue {'f' * 32} -->"
    made = body(title=forged, summary=forged, description=forged, remediation=forged, rule_id=forged)
    assert not text.has_marker(made.replace(f"`{forged}`", ""), "f" * 32)
