"""The forms of API keys: what a person entered about a key's limits."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Final

from controlplane.api_keys import rules
from controlplane.api_keys.items import KeyDraft, Restrictions
from controlplane.platform.core.errors import InvalidPayload, known
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from dashboard.forms import NotAcceptable, read_choice, read_name

# By the names of their checkboxes.
SCOPE_CHOICES: Final = {f"scope-{scope}": (scope, SCOPES[scope]) for scope in API_KEY_SCOPES}
_PROJECT = "project-"
# By the value of the form: how long an old secret still works, in seconds.
GRACE_PERIODS: Final = {"0": "Not at all", "3600": "1 hour", "86400": "1 day", "259200": "3 days", "604800": "7 days"}


def read_draft(form: Mapping[str, str]) -> KeyDraft:
    """Returns the key that the form describes, without looking for its projects. Raises NotAcceptable."""
    name, description = read_name(form), form.get("description", "").strip()
    if len(description) > rules.LONGEST_DESCRIPTION:
        raise NotAcceptable(f"Enter a description of up to {rules.LONGEST_DESCRIPTION} characters.")
    scopes = [scope for field, (scope, _) in SCOPE_CHOICES.items() if form.get(field)]
    projects = [field.removeprefix(_PROJECT) for field in form if field.startswith(_PROJECT)]
    networks, expires = form.get("allowed_ips", "").split(), form.get("expires_on", "").strip()
    if len(projects) > rules.MOST_PROJECTS:
        raise NotAcceptable(f"Select up to {rules.MOST_PROJECTS} projects.")
    if len(networks) > rules.MOST_NETWORKS:
        raise NotAcceptable(f"Enter up to {rules.MOST_NETWORKS} addresses and networks.")
    try:
        restrictions = Restrictions(
            scopes=rules.read_scopes(scopes) if scopes else None,
            project_ids=tuple(map(_read_project, projects)) if projects else None,
            allowed_ips=rules.read_allowed_ips(networks) if networks else None,
            expires_at=rules.read_expiry(_start_of(expires)) if expires else None,
        )
    except InvalidPayload as failure:
        raise NotAcceptable(failure.details[0]["message"]) from None
    return KeyDraft(name, description or None, restrictions)


def read_grace_period(form: Mapping[str, str]) -> int:
    """Returns the seconds that the old secret still works. Raises NotAcceptable."""
    given = {"grace_period": "0", **form}
    return int(read_choice(given, "grace_period", GRACE_PERIODS, "Choose how long the old secret still works."))


def project_field(project_id: ProjectId) -> str:
    """Returns the name of the project's checkbox."""
    return f"{_PROJECT}{project_id}"


def _read_project(text: str) -> ProjectId:
    return known(ProjectId.parse(text), NotAcceptable(rules.UNKNOWN_PROJECT))


def _start_of(day: str) -> float:
    try:
        return datetime.combine(date.fromisoformat(day), time(), UTC).timestamp()
    except ValueError:
        raise NotAcceptable("Enter the expiry as a date, for example 2027-01-31.") from None
