"""The times of scheduled scans."""

from itertools import pairwise

from controlplane.platform.core.schedules import Schedule, next_run

NOW, HOUR = 1_772_600_767.25, 3600
PERIODS: dict[Schedule, int] = {"daily": 24 * HOUR, "weekly": 7 * 24 * HOUR}


def test_runs_of_a_link_are_one_period_apart_and_on_the_minute():
    for schedule, period in PERIODS.items():
        runs = [NOW]
        for _ in range(4):
            runs.append(next_run(schedule, "rep_a", "prj_b", runs[-1]))
        assert 0 < runs[1] - NOW <= period
        assert {later - earlier for earlier, later in pairwise(runs[1:])} == {period}
        assert {run % 60 for run in runs[1:]} == {0}


def test_a_run_is_due_once_in_adjoining_intervals():
    run = next_run("daily", "rep_a", "prj_b", NOW)
    bounds = [NOW, run - 60, run, run + 60, run + 24 * HOUR - 1]
    due = [next_run("daily", "rep_a", "prj_b", start) <= end for start, end in pairwise(bounds)]
    assert due == [False, True, False, False]


def test_a_link_keeps_its_times_in_later_releases():
    assert [next_run(schedule, "rep_1", "prj_1", NOW) for schedule in PERIODS] == [1_772_608_440, 1_772_954_040]


def test_links_are_spread_over_the_period():
    for schedule, period in PERIODS.items():
        parts = [0] * 12
        for number in range(1200):
            run = next_run(schedule, f"rep_{number % 40}", f"prj_{number}", NOW)
            parts[int((run - NOW) / period * 12)] += 1
        assert min(parts) > 60
        assert max(parts) < 140
