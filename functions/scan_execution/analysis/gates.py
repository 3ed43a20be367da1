"""Decides whether code runs only after a visitor has consented.

Prefers precision: anything that looks like a consent check counts as one, for any library. Code is gated if it is
inside such a check, in the callback of a consent API, in a component or tag that waits for consent, or in a function
that is called only from such places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ast_grep_py import SgNode

from scan_execution.analysis.gating import CLOSED, OPEN, Gate, Gating
from scan_execution.analysis.sources import Block, Source

_WORDS: Final = (
    r"consent|cookie_?(?:pref|accept|choice|allow|approv|polic|setting|banner|notice|law)"
    r"|accept(?:ed)?_?(?:all_?)?cookies|gdpr|dsgvo|rgpd|ccpa"
    r"|__tcfapi|__gpp|tcstring|optanon|onetrust|cookiebot|didomi|usercentrics|uc_ui|klaro|tarteaucitron|axeptio|iubenda"
    r"|cookieyes|osano|termly|cookiehub|cookiefirst|cookie-?script|complianz|cmplz|sourcepoint|trustarc"
    r"|opt(?:ed)?_?-?in\b|optedin|privacy_?(?:pref|choice|setting)"
    r"|(?:allow|accept|permit|agree|grant)(?:ed|s)?_?(?:to_?)?(?:analytics|tracking|marketing|statistics|ads|cookies?)"
    r"|(?:analytics|marketing|tracking|statistics|cookies?|ads)_?(?:are_?|is_?)?"
    r"(?:allowed|granted|accepted|permitted|approved|agreed)"
    r"|can_?track|do_?not_?track|has_?(?:agreed|accepted|opted)"
)
CONSENT: Final = re.compile(_WORDS, re.IGNORECASE)
# Names of functions that take a callback, or of properties that hold one.
_CALLBACK: Final = re.compile(
    rf"{_WORDS}|^on_?(?:accept|agree|allow|opt_?in|grant)|^handle_?(?:accept|agree|allow)", re.IGNORECASE
)
# Marks of a tag that runs only when a consent tool activates it.
_WAITING_TAG: Final = re.compile(
    r"""type\s*=\s*\{?["']?text/plain|data-(?:cookie|consent|category|usercentrics|cmp|cc-|iub|cky|purpose|cookieyes|gdpr)"""
    r"""|optanon-category|_iub_cs_activate|cmplazyload|cky-|\bconsent\w*=|v-if=["'][^"']*(?:consent|cookie|accepted)""",
    re.IGNORECASE,
)
# Scripts that block everything after them on the page.
AUTO_BLOCKER: Final = re.compile(
    r"data-blockingmode=[\"']?auto|OtAutoBlock\.js|autoblocker\.js|/autoblocking/|data-cmp-ab=|semiautomatic"
    r"|termly\.io/resource-blocker|cdn-cookieyes\.com/client_data|cmp\.osano\.com|cookie-script\.com/s/|uc-block\.bundle",
    re.IGNORECASE,
)
# Settings that make a tag itself wait for consent, or do without identifiers until then.
CONSENT_MODE: Final = re.compile(
    r"""["']consent["']\s*,\s*["']default["']|requireConsent|requireCookieConsent|disableCookies|opt_out_capturing_by_default"""
    r"""|opt_out_tracking_by_default|cookieless_mode|["']consent["']\s*,\s*["']revoke["']|addPrivacyConsentListener|holdConsent"""
    r"""|persistence["']?\s*:\s*["']memory|optOut["']?\s*:\s*true|anonymous_mode|defaultTrackingConsent""",
)
_CATEGORY_KEY: Final = re.compile(r"""["']?(?:category|consent\w*|purpose|service|cookieCategory)["']?\s*:""")
_ENTRY: Final = re.compile(
    r"(?:^|/)(?:\+?layout|_app|_document|_layout|\+?page|index|main|app|root|entry[.-]\w+|gatsby-\w+|nuxt\.config"
    r"|docusaurus\.config|hooks\.client|base|routes?|home)(?:\.\w+){1,2}$|(?:^|/)plugins/",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(r"[\s(]*+(?:!|not\b)")
_TAG_NAME: Final = re.compile(r"<\s*([\w.:-]+)")
_LEAVES: Final = re.compile(r"\b(?:return|throw|raise)\b")
_HANDS_ON: Final = re.compile(r"(?:React\.)?(?:useCallback|memo|forwardRef)")
_FUNCTIONS: Final = frozenset({
    "function_declaration", "function_expression", "arrow_function", "method_definition",
    "generator_function_declaration", "function_definition",
})  # fmt: skip
_BRANCHES: Final = frozenset({"if_statement", "ternary_expression", "elif_clause", "while_statement"})
_MAX_ANCESTORS = 200
_MAX_USES = 20


def speaks_of_consent(text: str) -> bool:
    return bool(CONSENT.search(text))


def gating(source: Source, block: Block, node: SgNode) -> Gating:
    """Returns whether the code of a node waits for consent."""
    offset = block.start + node.range().start.index
    if speaks_of_consent(source.path) or source.first(CONSENT_MODE):
        return CLOSED
    blocker = source.first(AUTO_BLOCKER)
    if blocker and blocker.start() < offset:
        return CLOSED
    if _in_template_condition(source, offset):
        return CLOSED
    found = _gate(block, node, 0)
    if found is Gate.CALLERS and _ENTRY.search(source.path):
        return OPEN
    return Gating(found)


def _in_template_condition(source: Source, offset: int) -> bool:
    return any(
        speaks_of_consent(test.text) and test.holds is not bool(_NEGATED.match(test.text))
        for test in source.template_conditions(offset)
    )


def _gate(block: Block, node: SgNode, level: int) -> Gate:
    if _tag_waits(node):
        return Gate.CLOSED
    functions: list[SgNode] = []
    child = node
    for parent in node.ancestors()[:_MAX_ANCESTORS]:
        if _closes(block, parent, child):
            return Gate.CLOSED
        if parent.kind() in _FUNCTIONS:
            functions.append(parent)
        child = parent
    answer = Gate.OPEN
    for function in functions:
        called = _gate_of_callers(block, function, level)
        if called is Gate.CLOSED:
            return Gate.CLOSED
        if called is Gate.CALLERS:
            answer = Gate.CALLERS
    if block.outer is not None and block.host is not None:
        outer = _gate(block.outer, block.host, level)
        return outer if outer is not Gate.OPEN else answer
    return answer


def _tag_waits(node: SgNode) -> bool:
    kind = node.kind()
    if kind == "script_element":
        tag = node.child(0)
        return tag is not None and bool(_WAITING_TAG.search(tag.text()))
    if kind in {"start_tag", "self_closing_tag", "jsx_self_closing_element", "jsx_opening_element"}:
        return bool(_WAITING_TAG.search(node.text())) or _component_waits(node.text())
    return False


def _component_waits(tag: str) -> bool:
    name = _TAG_NAME.match(tag)
    return bool(name and speaks_of_consent(name[1]))


def _closes(block: Block, parent: SgNode, child: SgNode) -> bool:
    """Returns whether a parent runs this child only with consent."""
    kind = parent.kind()
    if kind in _BRANCHES:
        test = parent.field("condition")
        return test is not None and not _same(test, child) and block.holds(CONSENT, test)
    if kind in {"binary_expression", "boolean_operator", "conditional_expression"}:
        return any(block.holds(CONSENT, other) for other in parent.children() if not _same(other, child))
    if kind in {"statement_block", "program", "block", "module"}:
        return _returned_before(block, parent, child)
    if kind in {"call_expression", "new_expression", "call"}:
        return _callee_is_consent(parent, child)
    if kind in {"pair", "method_definition", "jsx_attribute", "keyword_argument", "field_definition"}:
        name = parent.child(0)
        return name is not None and bool(_CALLBACK.search(name.text().strip("\"'")))
    if kind == "object":
        return _once(block, parent, _first_category) is not None
    if kind in {"variable_declarator", "function_declaration", "function_definition", "assignment_expression"}:
        name = parent.field("name") or parent.field("left")
        return name is not None and not _same(name, child) and bool(_CALLBACK.search(name.text()))
    if kind in {"jsx_element", "element", "script_element", "decorated_definition"}:
        tag = parent.child(0)
        return tag is not None and (
            _tag_waits(tag) or (kind == "decorated_definition" and speaks_of_consent(tag.text()))
        )
    if kind in {"jsx_self_closing_element", "jsx_opening_element", "start_tag"}:
        return _tag_waits(parent)
    return False


def _returned_before(block: Block, sequence: SgNode, statement: SgNode) -> bool:
    """Returns whether the statement follows a guard such as `if (!consent) return`."""
    guard = _once(block, sequence, _first_guard)
    return guard is not None and guard < statement.range().start.index


def _once(block: Block, parent: SgNode, find: Callable[[SgNode], int | None]) -> int | None:
    """Returns `find(parent)`, cached, because each candidate among a node's many children needs it."""
    if parent not in block.guards:
        block.guards[parent] = find(parent)
    return block.guards[parent]


def _first_category(properties: SgNode) -> int | None:
    """Returns the start of the first property that names a consent category, or None."""
    for other in properties.children():
        if other.kind() == "pair" and _CATEGORY_KEY.match(other.text()):
            return other.range().start.index
    return None


def _first_guard(sequence: SgNode) -> int | None:
    """Returns the start of the first statement that exits without consent, or None."""
    for statement in sequence.children():
        if statement.kind() != "if_statement":
            continue
        test, then = statement.field("condition"), statement.field("consequence")
        if test and then and speaks_of_consent(test.text()) and _LEAVES.search(then.text()):
            return statement.range().start.index
    return None


def _callee_is_consent(call: SgNode, child: SgNode) -> bool:
    callee = call.field("function") or call.field("constructor")
    if callee is None or _same(callee, child):
        return False
    if callee.kind() not in _FUNCTIONS and _CALLBACK.search(_last_words(callee.text())):
        return True
    given = call.field("arguments")
    for argument in given.children() if given else ():
        # The event's name, or an effect's dependencies.
        if argument.kind() in {"string", "array"} and not _same(argument, child) and speaks_of_consent(argument.text()):
            return not argument.text().strip("'\"").startswith("http")
    return False


def _last_words(callee: str) -> str:
    return callee[-200:]


def _gate_of_callers(block: Block, function: SgNode, level: int) -> Gate:
    """Returns the gate of a function by the uses of its name. OPEN if it has no name, because it runs in place."""
    name = _name_of(function)
    if name is None or level >= 3:
        return Gate.OPEN
    key = function, level
    if key not in block.gates:
        block.gates[key] = _gate_of_uses(block, name, function, level)
    return block.gates[key]


def _gate_of_uses(block: Block, name: str, function: SgNode, level: int) -> Gate:
    declared = function.range()
    uses = [
        use
        for use in block.uses.get(name, ())[:_MAX_USES]
        if not (declared.start.index <= use.range().start.index < declared.end.index) and not _declares(use)
    ]
    if not uses:
        return Gate.CALLERS
    gates = {_gate(block, use, level + 1) for use in uses}
    return Gate.OPEN if Gate.OPEN in gates else Gate.CALLERS if Gate.CALLERS in gates else Gate.CLOSED


def _name_of(function: SgNode) -> str | None:
    name = function.field("name")
    if name is None:
        parent = function.parent()
        while parent is not None and parent.kind() in {"call_expression", "arguments"}:  # useCallback(() => ...)
            callee = parent.field("function")
            if callee is not None and not _HANDS_ON.fullmatch(callee.text()):
                return None
            parent = parent.parent()
        if parent is None or parent.kind() not in {"variable_declarator", "pair"}:
            return None
        name = parent.field("name") or parent.field("key")
    return name.text() if name is not None else None


def _declares(use: SgNode) -> bool:
    parent = use.parent()
    if parent is None:
        return False
    if parent.kind() in {"export_specifier", "export_statement", "import_specifier"}:
        return True
    name = parent.field("name")
    return parent.kind() == "variable_declarator" and name is not None and _same(name, use)


def _same(one: SgNode, other: SgNode) -> bool:
    return bool(one == other)


def checked(block: Block, node: SgNode) -> bool:
    """Returns whether a consent condition, earlier return, or callback guards code in its own tree."""
    child = node
    for parent in node.ancestors()[:_MAX_ANCESTORS]:
        if parent.kind() not in {"variable_declarator", "jsx_element"} and _closes(block, parent, child):
            return True
        child = parent
    return False


_RUNS_ITSELF: Final = re.compile(
    r"(?:use(?:Layout|Insertion)?Effect|onMounted|onMount|mounted|setTimeout|requestIdleCallback|queueMicrotask"
    r"|requestAnimationFrame|\.ready|^\$|^jQuery|\.then)$"
)
_LOADED: Final = re.compile(r"""["'](?:load|DOMContentLoaded|readystatechange)["']""")


def runs_on_load(node: SgNode) -> bool:
    """Returns whether code runs on page load: outside of functions, or in one that the page itself calls."""
    outermost_runs = False
    for ancestor in node.ancestors()[:_MAX_ANCESTORS]:
        if ancestor.kind() not in _FUNCTIONS:
            continue
        if _called_by_page(ancestor):
            outermost_runs = True
            continue
        name = _name_of(ancestor)
        # Effects of a component run when it is rendered.
        return outermost_runs and bool(name and name[:1].isupper())
    return True


def _called_by_page(function: SgNode) -> bool:
    parent = function.parent()
    while parent is not None and parent.kind() in {"parenthesized_expression", "arguments"}:
        parent = parent.parent()
    if parent is None:
        return False
    if parent.kind() == "assignment_expression":
        left = parent.field("left")
        return left is not None and left.text().endswith("onload")
    if parent.kind() in {"unary_expression", "member_expression"}:
        return True  # !function () {}(), (function () {}).call(this)
    if parent.kind() != "call_expression":
        return False
    callee = parent.field("function")
    if callee is None:
        return False
    inside = callee.range().start.index <= function.range().start.index < callee.range().end.index
    if inside or _RUNS_ITSELF.search(callee.text()):
        return True
    return callee.text().endswith("addEventListener") and bool(_LOADED.search(parent.text()[:200]))
