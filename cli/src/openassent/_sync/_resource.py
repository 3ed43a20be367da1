# Made from _async/_resource.py by `make sdk`: edit that file.
"""The base of all resources."""

from openassent._sync._core import Core


class Resource:
    """A group of operations."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def _organization(self, organization_id: str | None) -> str | None:
        return self._core.organization if organization_id is None else organization_id
