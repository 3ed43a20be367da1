"""The roles of an organization's members, from the fewest permissions to the most."""

from typing import Literal

Role = Literal["owner", "admin", "member"]
RANK: dict[Role, int] = {"member": 0, "admin": 1, "owner": 2}
