"""Keys of the single table. Keys are built only in this package, from ids whose format was validated.

Each builder has an example item above it. Other modules import the package, and call `keys.project(…)`. Partitions:

    organizations   ORG, SLUG, INVITEE, KH (keys by hash), AUDITLOG
    people          USER, EMAIL, IDENTITY, BLOCKS, CREDENTIALS, TH (tokens by hash), DC and UC (devices), FAMILY
    findings        SCAN, REPO, INSTALLATION, GITHUBSTATE, ISSUEATTEMPTS, SCANQUEUE, SCANSCHEDULE, SCANWATCH
    mail            MAILS, MAILTO
    operations      IP, RATE, REFUSALS, TRIES, IDEMPOTENCY, OUTBOX, DELETIONS, SWEEP, WAITSLOT, WORKERS, DELIVERY,
                    HOSTLIMIT, FEEDBACK…

`ORG#<organization>` holds nearly everything of an organization. An item that authenticates is found by its hash.
"""
# ruff: noqa: F403 (the package is used as one module)

from controlplane.platform.table.keys.findings import *
from controlplane.platform.table.keys.key import *
from controlplane.platform.table.keys.mail import *
from controlplane.platform.table.keys.operations import *
from controlplane.platform.table.keys.organizations import *
from controlplane.platform.table.keys.people import *
