"""Rules of decisions about a project's vendors: which there are, and what each means."""

from typing import Literal, NamedTuple

from controlplane.findings import vendors
from controlplane.findings.vendors import ReviewState, Seen, VendorState
from controlplane.projects.items import ProjectItem

Decision = Literal["approve", "ignore"]

_STATES: dict[Decision, VendorState] = {"approve": "approved", "ignore": "ignored"}


class Decided(NamedTuple):
    """The result of a decision. `finding_id` is the vendor's finding, or None if it has none."""

    state: VendorState
    review_state: ReviewState
    finding_id: str | None


def decide(project: ProjectItem, vendor_id: str, decision: Decision, user_id: str, seen: Seen | None = None) -> Decided:
    """Applies an admin's decision, and resolves the vendor's finding. Raises UnknownProject, Forbidden.

    The user must be an admin or an owner, which the write checks again. seen: vendor and finding if they were read.
    """
    state = _STATES[decision]
    finding_id = vendors.decide_vendor(project, vendor_id, state, user_id, caller_id=user_id, seen=seen)
    return Decided(state, vendors.REVIEWS[state], finding_id)
