"""The modules that the pages load before the first sign-in."""

from tests.support.cold_start import loaded_by


def test_the_libraries_of_a_sign_in_wait_for_one():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()
