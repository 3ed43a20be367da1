"""Expressions that were rewritten to be linear match the same text as their simple, quadratic forms."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from openassent_analysis import secrecy
from openassent_analysis.catalogue import catalogue
from openassent_analysis.engine import source_of
from openassent_analysis.manifests import read_manifest
from openassent_analysis.sources import Source

_PIECES = [
    *("secret", "api_key", "x", "_", "-", " ", "\n", '"', "'", "`", ":", "=", ";", ".", "(", "{", "&&", ")"),
    *("eyJ", "aaaaaaaaaa", "bbbbbbbb", "consent", "Consent", "use", "import ", "from ", "type ", "const a"),
    "let {b, c}",
    *("require(", "await ", "mixpanel-browser", "mixpanel-browser/dist/a", "sk_live_", "a = ", "abcd", "$"),
]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)

_TOKEN = re.compile(r"\beyJ[0-9a-zA-Z_-]{10,}\.[0-9a-zA-Z_-]{10,}\.[0-9a-zA-Z_-]{8,}")
_ASSIGNED = re.compile(
    r"""((?:secret|passw(?:or)?d|private_?key|access_?token|auth_?token|api_?key)\w*["']?\s*[:=]\s*["'`])([^"'`\n]{8,})""",
    re.IGNORECASE,
)


@given(TEXTS)
@example('x_eyJaaaaaaaaaa-eyJaaaaaaaaaa.bbbbbbbbbb.bbbbbbbb "mysecret_a": "aaaaaaaaaa"')
@settings(max_examples=400)
def test_masks_the_same_secrets(text: str):
    masked = _TOKEN.sub(lambda match: secrecy.mask(match[0]), text)
    plain = _ASSIGNED.sub(lambda match: match[1] + secrecy.mask(match[2]), secrecy._TOKENS.sub(_mask, masked))
    assert secrecy.masked(text) == plain


def _mask(match: re.Match[str]) -> str:
    return secrecy.mask(match[0])


@given(TEXTS)
@example("import a from 'mixpanel-browser'; const {b} = await import('mixpanel-browser/dist/a')")
@example("import type {a}\nfrom 'mixpanel-browser'")
@settings(max_examples=600)
def test_the_linear_search_finds_the_same_imports(text: str):
    source = Source("a.js", text, "javascript", catalogue())
    names = set()
    for package in source.packages:
        quoted = rf"""["']{re.escape(package)}(?:/[\w/-]+)?["']"""
        clauses = rf"import\s+(?:type\s+)?([^;\"'`]{{1,500}}?)\s+from\s+{quoted}"
        required = rf"(?:const|let|var)\s+([^=;]{{1,300}}?)=\s*(?:await\s+)?(?:require|import)\s*\(\s*{quoted}"
        for pattern in (clauses, required):
            for match in re.finditer(pattern, text):
                names |= set(re.findall(r"[A-Za-z_$][\w$]*", match[1]))
    assert set(source.imported) == names


def test_a_template_condition_ends_with_its_block():
    text = "A {% if consent %} B {% if x %} C {% endif %} D {% endif %} E {% if y %} F {% endif %}"
    source = source_of("a.html", text, "html")
    conditions = {letter: source.template_conditions(text.index(f"{letter} ")) for letter in "ABCDEF"}
    consent, x, y = ("consent", True), ("x", True), ("y", True)
    assert conditions == {"A": [], "B": [consent], "C": [x, consent], "D": [consent], "E": [], "F": [y]}


def test_a_manifests_package_is_located_after_its_name_as_text():
    text = '{"keywords": ["cookieconsent"], "dependencies": {"cookieconsent" : "3.0.0"}}'
    (pinned,) = read_manifest(text)
    assert text[pinned.start : pinned.end] == '"cookieconsent" : "3.0.0"'
