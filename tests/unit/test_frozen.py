"""A data class of `controlplane.core.frozen` behaves as a frozen one, except that only the type checker freezes it."""

import dataclasses

from controlplane.core.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    number: int
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    number: int
    names: tuple[str, ...] = ()


def test_equality_hash_and_replacement_are_those_of_a_frozen_data_class():
    quick, standard = Quick(number=1, names=("a",)), Standard(number=1, names=("a",))
    assert hash(quick) == hash(standard)
    assert quick == dataclasses.replace(Quick(number=2, names=("a",)), number=1)
    assert {quick, Quick(number=1, names=("a",))} == {quick}
    assert repr(quick).partition("(")[2] == repr(standard).partition("(")[2]
    assert dataclasses.asdict(quick) == dataclasses.asdict(standard)
    assert not hasattr(quick, "__dict__")


def test_creation_sets_fields_without_calls():
    assert "__setattr__" not in Quick.__init__.__code__.co_names
    assert "__setattr__" in Standard.__init__.__code__.co_names
