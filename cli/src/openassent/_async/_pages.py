"""Lists of any length."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from openassent._async._core import AsyncCore
from openassent._calls import Page, get

M = TypeVar("M", bound=BaseModel)


class AsyncPages(Generic[M]):
    """A list. Iterating over it requests the next page when it is needed.

    Each iteration begins at the start again.
    """

    def __init__(
        self,
        core: AsyncCore,
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

    async def __aiter__(self) -> AsyncIterator[M]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[M]]:
        """Iterates over the pages. One before the last can be empty."""
        page = await self.page()
        yield page
        while page.next_cursor is not None:
            page = await self._load(page.next_cursor)
            yield page

    async def page(self) -> Page[M]:
        """Returns the first page: its `items`, and `next_cursor` for the argument `cursor` of the list."""
        return await self._load(self._cursor)

    async def _load(self, cursor: str | None) -> Page[M]:
        call = get(self._url, public=self._public, **self._query, cursor=cursor)
        return await self._core.page(call, self._returns)


class AsyncResource:
    """A group of operations."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def _organization(self, organization_id: str | None) -> str | None:
        return self._core.organization if organization_id is None else organization_id
