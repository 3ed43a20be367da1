"""Keys of the single table. Keys are built only in this package, from ids whose format was validated.

Each builder has an example item above it. Other modules import the package, and call `keys.project(…)`. Partitions:

    accounts     USER, EMAIL, IDENTITY, BLOCKS, CREDENTIALS, TH (tokens by hash), DC and UC (devices), FAMILY
                 ORG, SLUG, INVITEE, KH (keys by hash), AUDITLOG
    findings     SCAN, REPO, INSTALLATION, GITHUBSTATE, ISSUEATTEMPTS, SCANQUEUE, SCANSCHEDULE, SCANWATCH, ADVISORIES,
                 LATESTSCANS, COMMENTED
    operations   IP, RATE, REFUSALS, TRIES, IDEMPOTENCY, OUTBOX, DELETIONS, AUDITSCHEDULE, AUDITWATCH, SWEEP, WAITSLOT,
                 WORKERS, DELIVERY, HOSTLIMIT, MAILS, MAILTO, FEEDBACK…

`ORG#<organization>` holds nearly everything of an organization. An item that authenticates is found by its hash.
"""
# ruff: noqa: F403 (the package is used as one module)

from controlplane.platform.table.keys.accounts import *
from controlplane.platform.table.keys.findings import *
from controlplane.platform.table.keys.key import *
from controlplane.platform.table.keys.operations import *
