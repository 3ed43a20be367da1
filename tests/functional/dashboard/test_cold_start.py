"""The modules that the pages load before the first sign-in."""

from tests.support.cold_start import loaded_by


def test_sign_in_libraries_are_imported_at_the_first_sign_in():
    assert loaded_by("dashboard.app", {"authlib", "cryptography", "joserfc", "requests"}) == set()
