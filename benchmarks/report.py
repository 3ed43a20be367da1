"""Interleaved rounds, and plain text tables: figures grouped by goal, and the details behind them.

A noisy machine affects all contenders of a round alike, and so not their ratios.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence

from benchmarks.goals import TITLES, Figure


def interleave[Name: Hashable](
    names: Iterable[Name], measure: Callable[[Name], float], rounds: int, *, warm_up: int = 1
) -> dict[Name, list[float]]:
    """Returns the measured values of each name by round. The order changes from round to round."""
    order = list(names)
    found: dict[Name, list[float]] = {name: [] for name in order}
    shuffled = random.Random(20)  # nosec B311  # the same orders in every run
    for turn in range(rounds + warm_up):
        shuffled.shuffle(order)
        for name in order:
            value = measure(name)
            if turn >= warm_up:
                found[name].append(value)
    return found


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Returns the median of the ratios of each round."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def table(rows: Iterable[Sequence[object]], header: Sequence[str]) -> str:
    """Columns aligned by their widest cell: the first to the left, numbers to the right."""
    lines = [[_cell(value) for value in row] for row in [header, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    numeric = [all(_is_number(row[column]) for row in lines[1:]) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def by_goal(figures: Sequence[Figure]) -> str:
    """Returns the compact report: one block per goal, in the order of the goals."""
    blocks = []
    for goal, title in TITLES.items():
        mine = [figure for figure in figures if figure.goal == goal]
        if not mine:
            continue
        rows = [
            (
                f"  {figure.subject}",
                _number(figure.measured),
                figure.unit,
                "" if figure.bound is None else f"at most {_number(figure.bound)}",
                figure.verdict,
                figure.note,
            )
            for figure in mine
        ]
        name = f"goal {goal}" if goal.isdigit() else goal
        blocks.append(table(rows, (f"{name}: {title}", "", "", "", "", "")))
    judged = [figure for figure in figures if figure.verdict]
    missed = sum(figure.verdict == "miss" for figure in judged)
    blocks.append(f"{len(judged) - missed} of {len(judged)} figures within their goal, {missed} missed")
    return "\n\n".join(blocks)


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e6 else f"{value:.2f}"


def _cell(value: object) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return not text or text.replace(".", "", 1).replace("-", "", 1).isdigit()
