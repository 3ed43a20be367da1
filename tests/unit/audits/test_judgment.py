"""Lists of cookies that a page makes up to keep an audit busy: without its bounds, a test runs into its timeout."""

from openassent_audit.judgment import declared_lifetimes, lifetime_in


def test_a_declared_name_of_many_placeholders_is_compared_in_linear_time():
    [(name, seconds)] = declared_lifetimes([["*a" * 30, "30 days"]]).items()
    assert (bool(name.fullmatch("a" * 4_000)), name.fullmatch(f"{'a' * 4_000}!"), seconds) == (True, None, 30 * 86_400)


def test_a_lifetime_after_many_digits_is_read_in_linear_time():
    assert lifetime_in(f"{'1' * 40_000}; 30 days") == 30 * 86_400
