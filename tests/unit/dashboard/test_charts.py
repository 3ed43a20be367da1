"""The geometry of charts, and how they are drawn."""

import re

from dashboard import charts
from dashboard.charts import HEIGHT, SLOT, Series
from dashboard.pages import _templates

LABELS = ("1 May", "2 May", "3 May")


def draw(chart: charts.Chart) -> str:
    source = '{% from "chart.html" import chart %}{{ chart(drawing) }}'
    return _templates.from_string(source).render(drawing=chart)


class TestBars:
    def test_a_bar_stacks_the_series_in_order(self):
        chart = charts.bars("Findings", LABELS, [Series("P0", [1, 0, 2], "problem"), Series("P1", [3, 0, 0], "info")])
        assert chart.ticks == [0, 1, 2, 3, 4]
        first, empty, last = chart.bars
        assert [(bar.tone, bar.y, bar.height) for bar in first] == [
            ("problem", HEIGHT * 3 / 4, HEIGHT / 4),
            ("info", 0, HEIGHT * 3 / 4),
        ]
        assert empty == []
        assert [(bar.tone, bar.height) for bar in last] == [("problem", HEIGHT / 2)]
        assert all(bar.x + bar.width / 2 == SLOT / 2 for bar in first)
        assert chart.rows == [("3 May", [2, 0]), ("2 May", [0, 0]), ("1 May", [1, 3])]

    def test_few_bars_are_narrow(self):
        widths = [charts.bars("", "x" * count, [Series("n", [1] * count)]).bars[0][0].width for count in (1, 3, 12)]
        assert widths == [8.33, 25, 60]


class TestLines:
    def test_a_line_passes_each_value_at_the_center_of_its_slot(self):
        (line,) = charts.lines("Credits", LABELS, [Series("Credits", [0, 50, 100])]).lines
        assert line.points == [(SLOT / 2, HEIGHT), (SLOT * 1.5, HEIGHT / 2), (SLOT * 2.5, 0)]


class TestAxes:
    def test_ticks_are_round_and_reach_the_greatest_value(self):
        expected = {
            0: [0, 1],
            1: [0, 1],
            3: [0, 1, 2, 3],
            5: [0, 2, 4, 6],
            17: [0, 5, 10, 15, 20],
            100: [0, 50, 100],
            1_234: [0, 500, 1_000, 1_500],
            9_000_001: [0, 5_000_000, 10_000_000],
        }
        for most, ticks in expected.items():
            assert charts.lines("", ("a",), [Series("n", [most])]).ticks == ticks

    def test_many_labels_are_thinned_out(self):
        labels = [f"{day} May" for day in range(1, 15)]
        shown = charts.lines("", labels, [Series("n", [1] * 14)]).shown_labels
        assert len(shown) == 14
        assert [label for label in shown if label] == ["1 May", "7 May", "14 May"]


class TestDrawing:
    def test_a_chart_has_its_numbers_in_a_table_and_no_inline_styles(self):
        series = [Series("Requests", [10, 20, 30]), Series("Refused", [0, 1, 2], "problem")]
        for chart in (charts.bars("Requests a day", LABELS, series), charts.lines("Requests a day", LABELS, series)):
            html = draw(chart)
            assert "style=" not in html
            assert re.findall(r"<td>(\d+)</td>", html) == ["30", "2", "20", "1", "10", "0"]
            assert '<th scope="row">3 May</th>' in html

    def test_texts_are_escaped(self):
        hostile = '"><script>alert(1)</script>'
        assert "<script" not in draw(charts.bars(hostile, [hostile], [Series(hostile, [1]), Series(hostile, [2])]))

    def test_a_chart_without_labels_says_that_it_is_empty(self):
        for make in (charts.bars, charts.lines):
            html = draw(make("Credits", [], [Series("Credits", [])]))
            assert "There is nothing to show yet." in html
            assert "<svg" not in html
