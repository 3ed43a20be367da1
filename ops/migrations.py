"""Migrations: each completes what older releases wrote, in one pass over the table, once.

Every function reads the old form, too, so a migration can run while the service is used.
"""

from typing import Any

from ops import credential_backfill, identities, inbox_backfill, issue_backfill, schema_migration

# In the order of the releases that introduced them. A migration stays here until no supported release precedes it.
_MIGRATIONS = {
    "identities": identities.record_all,
    "credentials": credential_backfill.run,
    "inbox": inbox_backfill.run,
    "issues": issue_backfill.run,
    # Last: an item with the current version needs none of the others.
    "versions": schema_migration.run,
}


def run(*, again: bool = False) -> dict[str, Any]:
    """Runs each migration that wasn't completed. Returns the result of each by name. again: runs all of them again."""
    return {name: migrate(again=again) for name, migrate in _MIGRATIONS.items()}
