"""Code that reads text from a client or a repository runs in time linear in the text's length.

Expressions are discovered, parsers are listed (`parsers.py`). The text almost matches (`hostile_text.py`), and CPU time
may grow by at most 2.5 when its length doubles.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from analysis_testing.in_process import analyze_files
from controlplane.platform.table.table import table
from openassent_analysis.calls import calls as vendor_calls
from openassent_analysis.examine import examine
from openassent_analysis.fixes import FIXES
from openassent_analysis.limits import Limits
from openassent_analysis.reading import load_yaml
from openassent_analysis.report import USES
from openassent_analysis.rules import rules
from tests.nightly import expressions, growth
from tests.nightly.expressions import FoundPattern
from tests.nightly.hostile_text import PIECES, Hostile, attacks
from tests.nightly.parsers import PARSERS, as_bytes

# Longer than the longest bounded run of any expression; quadratic time is obvious at this length.
_LONGEST_MATCHED = 8_192
# The tests of whole files lift the limits on length.
_BEYOND = 2 * growth.SIZES[-1]
_MANY = {"finditer", "findall", "split", "sub", "subn", "scanner"}
# The tests measure CPU time. On a busy machine, wall-clock time may be far longer.
pytestmark = pytest.mark.timeout(2400)
# Only compile the text of rules and of calls; `rule_patterns` and `call_patterns` collect all of it. What compiles the
# names of templates has an adapter, and what `reading` compiles is in constants of other modules, or has an adapter.
_COMPILE_DATA = (
    "analysis.conditions:", "analysis.calls:", "analysis.modules:", "analysis.reading:", "analysis.consent_setup:",
    "analysis.fixes:",
)  # fmt: skip


class _NoTable:
    """Replaces the table: these tests cover how text gets into a request, not the request itself."""

    def __getattr__(self, operation: str) -> Any:
        raise ConnectionError(operation)


@pytest.fixture(autouse=True)
def _without_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(vars(table), "client", _NoTable())
    with growth.no_collections():
        yield


def rule_patterns() -> Iterator[FoundPattern]:
    """Returns every text in a rule's conditions, since each may be an expression."""

    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list | tuple):
            for entry in value.values() if isinstance(value, dict) else value:
                yield from texts(entry)

    for rule in rules():
        for written in texts(dict(rule.where)):
            yield FoundPattern(f"rule {rule.id}", re.compile(written), frozenset({"search"}))


def call_patterns() -> Iterator[FoundPattern]:
    """Returns the expressions that recognize calls, paths, elements, and settings of vendors."""
    known = vendor_calls()
    for shape in known.shapes:
        yield FoundPattern(f"call {shape.callee}", shape.pattern, frozenset({"search"}))
    for place in (*known._paths, *known._elements):
        yield FoundPattern(f"path or element of {place.vendor.id}", place.pattern, frozenset({"search"}))
    for vendor, setting, value in known._settings:
        yield FoundPattern(f"setting of {vendor.id}", setting, frozenset({"search"}))
        yield FoundPattern(f"value of {vendor.id}", value, frozenset({"fullmatch"}))


def fix_patterns() -> Iterator[FoundPattern]:
    """Returns the expressions that find an ID, or the place of an edit, in a vendor's tag."""
    known = load_yaml(FIXES)
    for name, helper in known["c15t"]["vendors"].items():
        if "id" in helper:
            yield FoundPattern(f"id of {name}", re.compile(helper["id"]), frozenset({"search"}))
    for api in known["apis"]:
        if "before" in api:
            yield FoundPattern(f"start of {api['name']}", re.compile(api["before"]), frozenset({"search"}))


def too_slow(found: FoundPattern) -> str | None:
    """Returns a description of the method and text whose CPU time grows too much, or None."""
    pattern, methods = found.pattern, found.methods
    used: list[Callable[[Any], object]] = []
    if methods & _MANY:
        used.append(pattern.findall)  # does all the searching that the others do
    elif "search" in methods:
        used.append(pattern.search)
    if "fullmatch" in methods:
        used.append(pattern.fullmatch)
    if "match" in methods:
        used.append(pattern.match)
    for hostile in attacks(pattern):
        for call in used:
            if measured := growth.excess(call, _text_for(pattern, hostile), _LONGEST_MATCHED):
                return f"{found.place}: {call.__name__} of {hostile}: {measured}"
    return None


def _text_for(pattern: re.Pattern[Any], hostile: Hostile) -> Callable[[int], Any]:
    return (lambda size: as_bytes(hostile.text(size))) if isinstance(pattern.pattern, bytes) else hostile.text


class TestExpressions:
    def test_every_expression_is_found(self):
        hidden = [place for module in expressions.modules() for place in expressions.hidden_expressions(module)]
        assert [place for place in hidden if not any(known in place for known in _COMPILE_DATA)] == []
        assert len(hidden) <= 11
        # If nothing were found, nothing would fail.
        assert len({id(found.pattern) for found in expressions.patterns()}) > 80
        assert len(list(rule_patterns())) > 60

    def test_every_expression_is_linear(self):
        every = {id(found.pattern): found for found in expressions.patterns()}
        every |= {id(found.pattern): found for found in (*rule_patterns(), *call_patterns(), *fix_patterns())}
        assert [slow for found in every.values() if (slow := too_slow(found))] == []

    def test_patterns_of_validated_text_run_in_the_linear_engine(self):
        """pydantic's default engine doesn't backtrack. A compiled expression or a setting would select Python's."""
        strings = {str(schema["pattern"]): (place, schema) for place, schema in expressions.schema_strings()}
        assert len(strings) > 8
        for place, schema in strings.values():
            assert isinstance(schema["pattern"], str), place
            assert schema["regex_engine"] in {None, "rust-regex"}, place


def _slow_calls(call: Callable[[str], object], largest: int = growth.SIZES[-1]) -> str | None:
    growth.cpu_seconds(lambda: call("a"))  # loads what the first call loads
    for hostile in PIECES:
        if measured := growth.excess(call, hostile.text, largest, smallest=256):
            return f"{hostile}: {measured}"
    return None


def _slow_files(read: Callable[[str], object], hostiles: list[Hostile]) -> list[tuple[Hostile, str]]:
    growth.cpu_seconds(lambda: read("import a from './a'"))  # loads what the first call loads
    measured = [(it, growth.excess(read, it.text, smallest=2_048, beyond=_BEYOND)) for it in hostiles]
    return [(hostile, excess) for hostile, excess in measured if excess]


class TestParsers:
    @pytest.mark.parametrize("name", PARSERS)
    def test_every_parser_is_linear(self, name: str):
        parser = PARSERS[name]
        call, largest = parser if isinstance(parser, tuple) else (parser, growth.SIZES[-1])
        try:
            call("a")
        except (AttributeError, NameError, TypeError):
            raise  # `growth` ignores exceptions, so a call that is wrong would pass
        except Exception:  # noqa: BLE001 (a refusal)
            pass
        assert _slow_calls(call, largest) is None

    def test_the_analysis_of_a_file_is_linear(self):
        """Measures all rules and conditions together, on code that is full of candidates, because they read a tree."""
        limits = Limits(max_seconds_per_file=1_000, max_line_length=10**9, minified_line_length=10**9)
        tag = "'https://www.google-analytics.com/a.js'"
        codes = {
            "a.js": [
                Hostile("import mixpanel from 'mixpanel-browser'\n", "mixpanel.track('a', {email: user.email});\n"),
                Hostile("", f"s.src = {tag};\n"),
                Hostile("", "document.cookie = '_ga=1; max-age=99999999';\n"),
                Hostile("", f"if (a) {{ return }} s.src = {tag};\n"),
                Hostile("f();\n", f"function f() {{ s.src = {tag}; f() }}\n"),
                Hostile("", f"function f() {{ s.src = {tag} }} f();\n"),
                Hostile("s.src = f(", f"/* x */ {tag}, ", ")"),
                Hostile("x = {", f"a: {{src: {tag}}}, ", "}; scripts"),
            ],
            "a.html": [
                Hostile("", f"<script src={tag}></script>\n"),
                Hostile("", f"{{% if consent %}}<script src={tag}></script>{{% endif %}}\n"),
                Hostile("", f"<script>s.src = {tag}</script>\n"),
            ],
            "a.py": [Hostile("", "init(send_default_pii=True)\n")],
        }
        for path, hostiles in codes.items():
            assert _slow_files(lambda text, path=path: analyze_files([(path, text.encode())], limits), hostiles) == []  # type: ignore[misc]

    def test_the_uses_of_a_file_are_linear(self):
        limits = Limits(max_seconds_per_file=1_000, max_line_length=10**9, minified_line_length=10**9)
        codes = {
            ("a.tsx", "tsx"): [
                Hostile("", "import a from './a';\n"), Hostile("", "export { a } from './a';\n"),
                Hostile("import a from './a';\n", "a();\n"), Hostile("import a from './a';\n", "a="),
                Hostile("", "import('./a');\n"), Hostile("", "const a = lazy(() => import('./a'));\n"),
            ],
            ("a.vue", "html"): [
                Hostile("<script>import a from './a'</script>", "<a/>\n"), Hostile("", "<script src=a.js>"),
            ],
        }  # fmt: skip
        for (path, language), hostiles in codes.items():
            kind = f"{USES}{language} a f"
            assert _slow_files(lambda text, at=(path, kind): examine(*at, text.encode(), limits), hostiles) == []  # type: ignore[misc]
