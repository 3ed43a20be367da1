"""Evaluates alarms of the template on synthetic series, with CloudWatch's rules for metric math and missing data.

Simpler than CloudWatch in one point: CloudWatch may look back further than the evaluation periods for data, and then
judges by what it finds there.
"""

import ast
import operator
from collections.abc import Mapping
from typing import Any

# One value per period, the last one the most recent. None: no data.
type Series = list[float | None]

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_COMPARISONS = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}


def calculate(expression: str, series: Mapping[str, Series]) -> Series:
    """Returns the values of a metric math expression.

    A value is None where an operand is missing or a divisor is 0. FILL replaces missing values.
    """
    (length,) = {len(it) for it in series.values()}
    return _calculated(ast.parse(expression, mode="eval").body, series, length)


def _calculated(node: ast.expr, series: Mapping[str, Series], length: int) -> Series:
    match node:
        case ast.Constant(value=int() | float() as value):
            return [float(value)] * length
        case ast.Name(id=name):
            return series[name]
        case ast.BinOp(left=left, op=op, right=right):
            pairs = zip(_calculated(left, series, length), _calculated(right, series, length), strict=True)
            is_division = isinstance(op, ast.Div)
            return [
                None
                if one is None or other is None or (is_division and other == 0)
                else _OPERATORS[type(op)](one, other)
                for one, other in pairs
            ]
        case ast.Call(func=ast.Name(id="FILL"), args=[filled, ast.Constant(value=int() as value)]):
            return [value if it is None else it for it in _calculated(filled, series, length)]
    raise ValueError(ast.unparse(node))


def is_alarm(properties: Mapping[str, Any], series: Series) -> bool:
    """Returns whether the alarm is in ALARM after the series: M of the last N values breach."""
    periods = properties["EvaluationPeriods"]
    compare = _COMPARISONS[properties["ComparisonOperator"]]
    # "ignore" and "missing" aren't used.
    missing = {"breaching": True, "notBreaching": False}[properties["TreatMissingData"]]
    breaching = [missing if value is None else compare(value, properties["Threshold"]) for value in series[-periods:]]
    return sum(breaching) >= properties.get("DatapointsToAlarm", periods)
