"""Data classes of stored items. A type checker sees the standard `dataclass`, and rejects assignments to frozen ones.

At runtime a frozen one isn't: its `__init__` would set each field by a call, which took a tenth of a list of 50.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, **options: Any) -> Any:
        """Returns the decorator. Instances have the same equality and hash as frozen ones."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)
