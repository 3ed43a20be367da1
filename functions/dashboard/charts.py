"""Small charts: the geometry of bars and lines, which `templates/chart.html` draws as SVG with a table of the numbers.

The drawing is stretched to the width of its place, so it contains shapes only. Labels are HTML next to it, which keeps
their size on a phone. Colors are classes of the style sheet, one for each tone.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Literal, NamedTuple

_DAY_SECONDS = 86_400

Tone = Literal["accent", "problem", "warning", "info", "muted"]

# Each label has a slot of this width in the drawing, whose shapes are stretched horizontally.
SLOT = 100
HEIGHT = 120
_WIDEST_BAR = 60
# Few bars would otherwise be as wide as the page.
_MOST_OF_THE_WIDTH = 12
_INTERVALS = 4
# The most labels that fit next to each other on a phone: of days, and of days with times.
_MOST_LABELS, _MOST_LONG_LABELS = 6, 2
_SHORT = len("Nov 23")


class Series(NamedTuple):
    """Numbers with a name, one for each label of the chart. No number may be negative."""

    name: str
    values: Sequence[int]
    tone: Tone = "accent"


class Bar(NamedTuple):
    """A part of a stacked bar."""

    tone: Tone
    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """A line through the points (x, y)."""

    tone: Tone
    points: list[tuple[float, float]]


class Chart(NamedTuple):
    """A chart for `chart.html`. ticks: the numbers of the vertical axis, from 0 up. bars: those of each label."""

    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    ticks: list[int]
    bars: list[list[Bar]]
    lines: list[Line]

    @property
    def width(self) -> int:
        return SLOT * max(1, len(self.labels))

    @property
    def height(self) -> int:
        return HEIGHT

    @property
    def tick_heights(self) -> list[float]:
        """Returns the vertical position of each tick."""
        return [_y(tick, self.ticks) for tick in self.ticks]

    @property
    def shown_labels(self) -> list[str]:
        """Returns the labels of the horizontal axis, empty where there is no room for one."""
        last, are_short = len(self.labels) - 1, all(len(label) <= _SHORT for label in self.labels)
        if last < (_MOST_LABELS if are_short else _MOST_LONG_LABELS):
            return list(self.labels)
        shown = (0, last // 2, last) if are_short else (0, last)
        return [label if index in shown else "" for index, label in enumerate(self.labels)]

    @property
    def rows(self) -> list[tuple[str, list[int]]]:
        """Returns the rows of the table: each label with its numbers, the last label first."""
        values = zip(*(it.values for it in self.series), strict=True)
        return [(label, list(row)) for label, row in zip(self.labels, values, strict=True)][::-1]


def labels_of(timestamps: Sequence[str]) -> list[str]:
    """Labels the timestamps: with days, with times if a day occurs twice, or with times alone on a single day."""
    moments = [datetime.fromisoformat(timestamp) for timestamp in timestamps]
    days, times = [f"{moment:%b} {moment.day}" for moment in moments], [f"{moment:%H:%M}" for moment in moments]
    if len(set(days)) == len(days):
        return days
    if len(set(days)) == 1 and len(set(times)) == len(times):
        return times
    return [f"{day}, {time}" for day, time in zip(days, times, strict=True)]


def labels_of_days(days: Iterable[int]) -> list[str]:
    """Returns the labels of days, which are numbers of days since 1970."""
    return labels_of([datetime.fromtimestamp(day * _DAY_SECONDS, UTC).isoformat() for day in days])


def bars(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Returns a chart of one bar for each label. The series are stacked, the first at the bottom."""
    stacks = [list(accumulate(values, initial=0)) for values in zip(*(it.values for it in series), strict=True)]
    ticks = _ticks(max((stack[-1] for stack in stacks), default=0))
    width = round(min(_WIDEST_BAR, SLOT * len(labels) / _MOST_OF_THE_WIDTH), 2)
    drawn = [
        [
            Bar(it.tone, _x(slot) - width / 2, _y(top, ticks), width, round(_y(bottom, ticks) - _y(top, ticks), 2))
            for it, bottom, top in zip(series, stack, stack[1:], strict=False)
            if top > bottom
        ]
        for slot, stack in enumerate(stacks)
    ]
    return Chart(title, labels, series, ticks, drawn, [])


def lines(title: str, labels: Sequence[str], series: Sequence[Series]) -> Chart:
    """Returns a chart of one line for each series."""
    ticks = _ticks(max((value for it in series for value in it.values), default=0))
    drawn = [Line(it.tone, [(_x(slot), _y(value, ticks)) for slot, value in enumerate(it.values)]) for it in series]
    return Chart(title, labels, series, ticks, [], drawn)


def _x(slot: int) -> float:
    return SLOT * slot + SLOT / 2


def _y(value: int, ticks: Sequence[int]) -> float:
    return round(HEIGHT * (1 - value / ticks[-1]), 2)


def _ticks(most: int) -> list[int]:
    """Returns round numbers with equal steps, from 0 to the first one that isn't below `most`."""
    power = 1
    while 5 * power * _INTERVALS < most:
        power *= 10
    step = next(it * power for it in (1, 2, 5) if it * power * _INTERVALS >= most)
    return [step * count for count in range(max(1, math.ceil(most / step)) + 1)]
