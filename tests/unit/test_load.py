"""The figures of the load test and of the soak test."""

from collections import Counter

from benchmarks.load.figures import Sample, growth, percentile


def test_a_percentile_is_a_latency_that_so_many_requests_dont_exceed():
    times = Counter({1.0: 50, 2.0: 40, 30.0: 9, 400.0: 1})
    assert [percentile(times, percent) for percent in (50, 90, 99, 100)] == [1.0, 2.0, 30.0, 400.0]


KINDS = Counter({("ORG/PROJECT", False): 55, ("KEY/RATE", True): 2})


class TestSoak:
    def verdicts(self, samples: list[Sample], after: Counter[tuple[str, bool]]) -> dict[str, str]:
        lines = growth(samples, KINDS, after).splitlines()
        return {line[:12].strip(): line.split()[-1] for line in lines if line.endswith(("flat", "grows"))}

    def test_constant_figures_are_flat(self):
        samples = [Sample(80.0 + 0.1 * (number % 2), 30 - number % 3) for number in range(12)]
        # Items that expire aren't growth.
        expiring = KINDS + Counter({("KEY/RATE", True): 10})
        expected = {"megabytes": "flat", "connections": "flat", "other items": "flat"}
        assert self.verdicts(samples, expiring) == expected

    def test_a_leak_of_each_kind_grows(self):
        samples = [Sample(80.0 + number, 30 + number) for number in range(12)]
        after = KINDS + Counter({("DELETIONS/prj", False): 1})
        expected = {"megabytes": "grows", "connections": "grows", "other items": "grows"}
        assert self.verdicts(samples, after) == expected
