"""Project slugs, made from project names."""

import re

from hypothesis import given
from hypothesis import strategies as st

from controlplane.projects.store import slug_of
from tests.support.each import each


@given(st.text(max_size=200))
def test_any_name_gives_a_slug_that_fits_a_url(name):
    slug = slug_of(name)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) <= 48
    assert slug_of(slug) == slug


@each("name", ["", "   ", "日本語", "🛒🛒", "---", "\u0301"])
def test_a_name_without_latin_letters_or_digits_gives_a_neutral_slug(name):
    assert slug_of(name) == "project"


def test_a_truncated_slug_ends_without_a_hyphen():
    assert slug_of("x" * 47 + " y") == "x" * 47
