"""Makes the mutants of a module: each is the module with one small change that a test should notice.

Operators, conditions, numbers, and the parts of DynamoDB conditions and transactions are changed. Messages, log lines,
annotations, and imports aren't changed: where they matter, a test compares them.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEGS = {"Check", "Put", "Update", "Delete", "role_check"}
_AND = " AND "
_EMPTY = {"{}", "[]", "()", "''"}
_LOGGED = {"logger", "metrics", "warnings"}
# A condition of DynamoDB, in contrast to an update expression or a message.
_CONDITION = re.compile(r"attribute_(?:not_)?exists\(|#\w+ (?:=|<>|<|<=|>|>=|IN|BETWEEN) [:(#]|^contains\(")
_UPDATE = re.compile(r"\s*(?:SET|REMOVE|ADD|DELETE) ")
# Weakens what it is added to. DynamoDB rejects values that no expression uses, so a part can't only be left out.
_OR_TRUE = "OR attribute_exists(pk) OR attribute_not_exists(pk)"


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change. path: of the module, from the root. scope, span: of the function with the line."""

    path: str
    line: int
    scope: str
    span: range
    change: str
    code: CodeType

    def rank(self, seed: str = "") -> str:
        """Returns the place in an order that is arbitrary, and always the same for a seed."""
        return sha256(f"{seed}{self.path} {self.scope} {self.change}".encode()).hexdigest()


def make_mutants(root: Path, path: str, lines: set[int] | None = None) -> list[Mutant]:
    """Returns the mutants of functions on these lines, or on all. path: of the module, from the root."""
    tree = ast.parse((root / path).read_text())
    original = compile(tree, root / path, "exec", dont_inherit=True)
    spans = [(name, range(node.lineno, (node.end_lineno or 0) + 1)) for name, node in _functions(tree.body)]
    scopes = {line: (name, span) for name, span in spans for line in span}
    return [
        Mutant(path, node.lineno, *scopes[node.lineno], change, code)
        for node, change, code in _changes(tree, root / path)
        if node.lineno in scopes and (lines is None or node.lineno in lines) and code != original
    ]


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yields functions, and the methods of classes, by name. Nested functions belong to theirs."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


type _Change = tuple[str, Callable[[], Callable[[], None]], ast.AST]


def _changes(tree: ast.Module, path: Path) -> Iterator[tuple[Any, str, CodeType]]:
    """Yields each change with its node and the module's code. The tree is the original again after each."""
    for node in _places(tree):
        for change, make, at in _changes_of(node):
            undo = make()
            try:
                code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
            finally:
                undo()
            yield at, change, code


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that are worth a change."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_params", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_quiet(child):
                continue
            yield child
            yield from _places(child)


def _is_quiet(node: ast.AST) -> bool:
    """Returns whether tests need not notice changes in here: log lines, types, documentation, and checks by `zip`."""
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return True
    if isinstance(node, ast.Import | ast.ImportFrom | ast.TypeAlias):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"__all__", "__slots__"}:
        return True
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    called = node.value.func if isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and ast.unparse(called.value) in _LOGGED


def _changes_of(node: ast.AST) -> Iterator[_Change]:
    for kind, changes in _KINDS:
        if isinstance(node, kind):
            yield from changes(node)


def _set(node: ast.AST, field: str, value: Any, shown: str | None = None, at: ast.AST | None = None) -> _Change:
    """Returns the change of one field of a node. `at` is the part of it that has the line to report."""
    before = getattr(node, field)

    def undo() -> None:
        setattr(node, field, before)

    def make() -> Callable[[], None]:
        setattr(node, field, value)
        return undo

    if shown is None:
        old = _short(node)
        make()
        shown = f"{old} -> {_short(node)}"
        undo()
    return shown, make, at or node


def _compare(node: ast.Compare) -> Iterator[_Change]:
    for position, operator in enumerate(node.ops):
        ops = [*node.ops]
        ops[position] = _COMPARED[type(operator)]()
        yield _set(node, "ops", ops)


def _bool(node: ast.BoolOp) -> Iterator[_Change]:
    for position, value in enumerate(node.values):
        if ast.unparse(value) in _EMPTY:
            continue  # a default: without it, only an error is another one
        values = node.values[:position] + node.values[position + 1 :]
        yield _set(
            node, "values", [*values, *values] if len(values) == 1 else values, f"without {_short(value)}", value
        )


def _binary(node: ast.BinOp | ast.AugAssign) -> Iterator[_Change]:
    texts = any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and not isinstance(side.value, int | float))
        for side in ((node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,))
    )
    if not texts and type(node.op) in _COMPUTED:
        yield _set(node, "op", _COMPUTED[type(node.op)]())


def _unary(node: ast.UnaryOp) -> Iterator[_Change]:
    if isinstance(node.op, ast.Not):
        yield _set(node, "operand", ast.UnaryOp(ast.Not(), node.operand))


def _condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[_Change]:
    if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield _set(node, "test", ast.UnaryOp(ast.Not(), node.test), f"if {_short(node.test)} -> if not")


def _constant(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield _set(node, "value", not value)
    elif isinstance(value, int | float):
        yield _set(node, "value", value + 1)
    elif isinstance(value, str):
        yield from _text(node, value)


def _text(node: ast.Constant, value: str) -> Iterator[_Change]:
    """Yields a condition with each of its parts true for every item, and an update of other attributes."""
    if _UPDATE.match(value):
        for name in re.findall(r"#\w+", value):
            yield _set(node, "value", value.replace(name, f"{name}Other", 1), f"{name} -> {name}Other")
    elif _CONDITION.search(value) and value.count("(") == value.count(")"):
        # Of a text that is added to a condition, what connects it stays.
        whole = value.removeprefix(_AND).removesuffix(_AND)
        if whole.startswith((" ", ",")):
            return
        parts = [whole] if "BETWEEN" in whole else whole.split(_AND)
        if any(part.count("(") != part.count(")") for part in parts):
            parts = [whole]
        for position, part in enumerate(parts):
            if part.endswith((":", "#", "(")):
                continue  # its end is computed
            weaker = [*parts[:position], f"({part} {_OR_TRUE})", *parts[position + 1 :]]
            yield _set(node, "value", value.replace(whole, _AND.join(weaker)), f"without the condition {part}")


def _legs(node: ast.Dict) -> Iterator[_Change]:
    """Yields a transaction without one of its legs."""
    if not any(map(_is_leg, node.values)):
        return
    for position, value in enumerate(node.values):
        key = node.keys[position]
        # Other legs are made by functions. Those that are written in a spread are left out one by one.
        if isinstance(value, ast.Call) if key else not _has_entries(value):

            def make(position: int = position) -> Callable[[], None]:
                kept, values = node.keys, node.values
                node.keys = kept[:position] + kept[position + 1 :]
                node.values = values[:position] + values[position + 1 :]

                def undo() -> None:
                    node.keys, node.values = kept, values

                return undo

            yield f"without the leg {_short(key or value)}", make, value


def _has_entries(value: ast.AST) -> bool:
    return any(isinstance(node, ast.Dict) and node.keys for node in ast.walk(value))


def _is_leg(value: ast.AST) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _LEGS


def _call(node: ast.Call) -> Iterator[_Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        yield _set(node.func, "id", _CALLED[node.func.id])


def _body(node: Any) -> Iterator[_Change]:
    """Yields the block without one of its statements, where the rest still makes sense."""
    for field in ("body", "orelse", "finalbody"):
        statements: list[ast.stmt] = getattr(node, field, [])
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.Raise | ast.Expr | ast.AugAssign | ast.Break | ast.Continue) and not (
                _is_quiet(statement) or (isinstance(statement, ast.Expr) and _is_yield(statement.value))
            ):
                blank = ast.copy_location(ast.Pass(), statement)
                changed = [*statements[:position], blank, *statements[position + 1 :]]
                yield _set(node, field, changed, f"without {_short(statement)}", statement)


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom)


_KINDS: tuple[tuple[Any, Callable[[Any], Iterator[_Change]]], ...] = (
    (ast.Compare, _compare),
    (ast.BoolOp, _bool),
    (ast.BinOp | ast.AugAssign, _binary),
    (ast.UnaryOp, _unary),
    (ast.If | ast.While | ast.IfExp, _condition),
    (ast.Constant, _constant),
    (ast.Dict, _legs),
    (ast.Call, _call),
    (ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.For | ast.AsyncFor | ast.While | ast.With | ast.AsyncWith
     | ast.Try | ast.ExceptHandler | ast.match_case, _body),
)  # fmt: skip


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
