"""IDs: what they locate, how they sort, and which strings are invalid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.platform.core import ids
from controlplane.platform.core.ids import KeyId, MemberId, ProjectId

ORGANIZATION = "org_0123456789abcdef"


def test_an_id_contains_its_organization_and_its_local_part_or_user():
    local, user = ids.new_local(), ids.new_root(ids.USER)
    for parsed, part in (
        (ProjectId.parse(str(ProjectId.of(ORGANIZATION, local))), local),
        (MemberId.parse(str(MemberId.of_user(ORGANIZATION, user))), user[4:]),
    ):
        assert parsed.location == (ORGANIZATION, part)


def test_ids_and_keys_have_the_form_that_stored_items_have():
    # Stored items are found by these values, so no release may change them.
    assert ids.derived_local("issue", "rep_1", "abc") == "kegn20ypsh7e9es4a1"
    assert ids.local_at(1_772_600_767.5) == "01kjvktd0c"
    assert ids.created_at("01kb2m3n4p5q6r7s8t") == 1_764_246_017.174
    assert ids.session_id("01kb2m3n4p5q6r7s8t") == "ses_01kb2m3n4p5q6r7s8t"
    assert MemberId.of_user(ORGANIZATION, "usr_5w1n8q2k7m3r9t4v") == "mem_0123456789abcdef5w1n8q2k7m3r9t4v"
    assert ProjectId.of(ORGANIZATION, "01kb2m3n4p5q6r7s8t") == "prj_0123456789abcdef01kb2m3n4p5q6r7s8t"


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_local_parts_sort_by_creation_time(first, second):
    assert (int(first * 1000) <= int(second * 1000)) == (ids.local_at(first) <= ids.local_at(second))


def test_new_ids_differ():
    for new in (ids.new_local, lambda: ids.new_root(ids.USER)):
        assert len({new() for _ in range(1_000)}) == 1_000


@given(st.text())
def test_text_of_another_form_is_not_an_id(text):
    assert ProjectId.parse(text) is None
    assert ProjectId.parse(f"prj_{text}") is None or len(text) == 34


def test_an_id_of_another_kind_is_refused():
    key = KeyId.of(ORGANIZATION, ids.new_local())
    assert KeyId.parse(key) is not None
    assert KeyId.stored(key) == key
    assert (ProjectId.parse(key), KeyId.parse(key + "\n"), KeyId.parse(key.upper())) == (None, None, None)
    with pytest.raises(LookupError):
        ProjectId.stored(key)
