"""The base of all resources."""

from openassent._async._core import AsyncCore


class AsyncResource:
    """A group of operations."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core

    def _organization(self, organization_id: str | None) -> str | None:
        return self._core.organization if organization_id is None else organization_id
