"""The types of a key and of an index."""

from typing import NamedTuple


class Key(NamedTuple):
    pk: str
    sk: str


class Index(NamedTuple):
    """A secondary index from the template: its name and key attributes."""

    name: str
    pk: str
    sk: str
