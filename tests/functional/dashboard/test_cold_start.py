"""What the pages load before anybody signs in."""

from tests.support.cold_start import loaded_by


def test_the_libraries_of_a_sign_in_wait_for_one():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()
