"""A loop over cases fails like separate tests: for each failing case, with its name."""

from contextlib import contextmanager

import pytest

from tests.support.each import each


def test_a_failure_names_its_case_and_the_other_cases_run():
    seen = []

    @each("number", [1, 2, 3])
    def check(number: int):
        seen.append(number)
        assert number != 2

    with pytest.raises(AssertionError) as failure:
        check()
    assert failure.value.__notes__ == ["with number = 2"]
    assert seen == [1, 2, 3]


def test_all_failing_cases_are_reported_by_the_given_names():
    @each("number, text", [(1, "a"), pytest.param(2, "b", id="two"), (3, "c")])
    def check(number: int, text: str):
        with pytest.raises(ValueError, match=text):
            int("a" if number == 1 else "7")

    with pytest.raises(BaseExceptionGroup) as failure:
        check()
    assert [failed.__notes__ for failed in failure.value.exceptions] == [
        ["with number, text = two"],
        ["with number, text = 3, 'c'"],
    ]


def test_each_case_runs_in_a_context_of_its_own_which_a_failure_closes():
    seen = []

    @contextmanager
    def around():
        seen.append("begin")
        try:
            yield
        finally:
            seen.append("end")

    @each("number", [1, 2], around=around)
    def check(number: int):
        seen.append(number)
        assert number == 2

    with pytest.raises(AssertionError):
        check()
    assert seen == ["begin", 1, "end", "begin", 2, "end"]


@each("number", [1, 2])
class TestOfAClass:
    @each("text", ["a"])
    def test_fixtures_and_further_cases_are_passed(self, number: int, text: str, tmp_path):
        (tmp_path / text).touch()
        assert number in {1, 2}


def test_no_cases_and_an_unknown_argument_are_refused():
    with pytest.raises(AssertionError, match="no cases"):
        each("number", [])
    with pytest.raises(AssertionError, match="an argument is missing"):
        each("number", [1])(lambda text: None)
