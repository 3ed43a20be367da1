"""Backfill of runtime findings and their vendors, for those that an older release wrote.

It adds the vendor to each finding's position in the lists, and copies the finding's evidence to the vendor. Until it
has finished, a list with such findings takes a second round trip, and their vendors are listed without evidence.
"""

from typing import Any

from controlplane.store import detections, inbox, keys
from ops import backfill


def run(*, again: bool = False) -> dict[str, Any]:
    """Completes the findings and vendors. Returns the numbers of findings read and completed, and when it finished.

    again: starts over, for example after a rollback to an older release.
    """
    condition = "begins_with(#pk, :organization) AND begins_with(#sk, :item) AND #source = :runtime"
    values = {"organization": keys.organization_pk(""), "item": keys.INBOX_PREFIX, "runtime": "runtime"}
    outcome = backfill.run(keys.inbox_backfill(), condition, values, _complete, again=again)
    return {"completedAt": outcome.completed_at, "read": outcome.read, "completed": outcome.changed}


def _complete(finding: dict[str, Any]) -> bool:
    """Completes a finding and its vendor. Returns True if one of them lacked something."""
    listed = inbox.add_vendor_to_order(finding)
    return detections.keep_evidence(finding) or listed
