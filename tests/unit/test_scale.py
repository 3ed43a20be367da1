"""The service's scaling limits: the arithmetic, its inputs, and the documents that show it."""

import inspect

import pytest

from benchmarks import scale
from benchmarks.scale import Limit, Profile
from controlplane.store import keys
from controlplane.store.keys import Key

RATES = {"request": 2.0, "scan": 0.5}


class TestArithmetic:
    def test_a_limit_is_reached_by_an_organizations_combined_activity(self):
        limit = Limit("x", 1000, {"request": 1, "scan": 16}, "raise it")
        assert limit.organizations(RATES) == 100
        assert limit.alone("request") == 1000
        assert limit.alone("scan") == 62.5
        assert limit.alone("issue") is None

    def test_an_unused_limit_is_never_reached(self):
        assert Limit("x", 1000, {"issue": 1}, "-").organizations({"issue": 0}) == float("inf")

    def test_daily_events_are_converted_to_the_busiest_second(self):
        rates = Profile(requests_per_second=3, scans=86_400).rates()
        assert rates["request"] == 3
        assert rates["scan"] == scale.PEAK

    def test_twice_the_activity_halves_the_organizations_and_the_first_limit_is_listed_first(self):
        published, template = scale.load()
        one = scale.simulate(Profile(), template, published)
        twice = scale.simulate(Profile(*(2 * value for value in vars(Profile()).values())), template, published)
        assert [organizations for organizations, _ in one] == sorted(organizations for organizations, _ in one)
        assert {limit.name: organizations / 2 for organizations, limit in one} == pytest.approx(
            {limit.name: organizations for organizations, limit in twice}
        )


class TestInputs:
    def test_limits_have_a_date_and_a_source(self):
        published, _ = scale.load()
        assert published["asOf"]
        assert all(address.startswith("https://docs.aws.amazon.com/") for address in published["sources"].values())

    def test_every_kind_of_partition_is_listed_once(self):
        def example(builder):
            values = {int: 1}
            return builder(
                **{
                    name: values.get(kind, "x")
                    for name, kind in inspect.get_annotations(builder).items()
                    if name != "return"
                }
            )

        builders = [
            builder
            for _, builder in inspect.getmembers(keys, inspect.isfunction)
            if inspect.get_annotations(builder).get("return") is Key
        ]
        kinds = {example(builder).pk.partition("#")[0] for builder in builders}
        listed = [partition.kind for partition in scale.partitions()]
        assert len(listed) == len(set(listed))
        assert set(listed) == kinds

    def test_everything_every_caller_writes_is_simulated(self):
        shared = [partition for partition in scale.partitions() if partition.keys is not None]
        assert all(partition.events for partition in shared)


@pytest.mark.parametrize(
    ("path", "section"),
    [(scale.PERFORMANCE, scale.render), (scale.ACCESS_PATTERNS, scale.render_partitions)],
    ids=["performance.md", "access-patterns.md"],
)
def test_the_document_shows_the_results_of_the_inputs(path, section):
    assert scale.in_document(path, section()) == path.read_text(), "run `make scale`"
