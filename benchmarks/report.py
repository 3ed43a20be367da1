"""Plain text tables: figures grouped by goal, and the details behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.goals import TITLES, Figure


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
