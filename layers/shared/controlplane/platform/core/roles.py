"""The roles of an organization's members, from the fewest permissions to the most."""

RANK: dict[str, int] = {"member": 0, "admin": 1, "owner": 2}
