# Made from _async/_pages.py by `make sdk`: edit that file.
"""Lists of any length."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from openassent._calls import Page, get
from openassent._sync._core import Core

M = TypeVar("M", bound=BaseModel)


class Pages(Generic[M]):
    """A list. Iterating over it requests page after page, as far as you iterate.

    Each iteration begins at the start again.
    """

    def __init__(
        self,
        core: Core,
        url: str,
        returns: type[M],
        cursor: str | None = None,
        query: dict[str, Any] | None = None,
        *,
        public: bool = False,
    ) -> None:
        self._core = core
        self._url = url
        self._returns = returns
        self._cursor = cursor
        self._query = query or {}
        self._public = public

    def __iter__(self) -> Iterator[M]:
        for page in self.pages():
            yield from page.items

    def pages(self) -> Iterator[Page[M]]:
        """Iterates over the pages. One before the last can be empty."""
        page = self.page()
        yield page
        while page.next_cursor is not None:
            page = self._load(page.next_cursor)
            yield page

    def page(self) -> Page[M]:
        """Returns the first page: its `items`, and `next_cursor` for the argument `cursor` of the list."""
        return self._load(self._cursor)

    def _load(self, cursor: str | None) -> Page[M]:
        call = get(self._url, public=self._public, **self._query, cursor=cursor)
        return self._core.page(call, self._returns)
