"""Reading forms, and the errors that a page shows above its form."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from controlplane.platform.core.errors import Conflict, InvalidPayload, known
from controlplane.platform.core.naming import clean_name

# The field of a form that takes effect once: see `once`.
ONCE = "once"


class NotAcceptable(InvalidPayload):
    """A value of the form can't be used. The message says which, and what to enter."""


class StillRunning(Conflict):
    message = "This is already being done. Wait a moment, and look at the list."


def read_name(form: Mapping[str, str], field: str = "name") -> str:
    """Returns the name in that field, trimmed. Raises NotAcceptable."""
    return known(clean_name(form.get(field, "")), NotAcceptable("Enter a name of up to 100 characters."))


def read_choice[T: str](form: Mapping[str, str], field: str, choices: Collection[T], refusal: str) -> T:
    """Returns the choice that the field names. Raises NotAcceptable with the text of the refusal."""
    return known(next((it for it in choices if it == form.get(field, "")), None), NotAcceptable(refusal))


def find_day(text: str) -> datetime | None:
    """Returns the start of a day in UTC, or None if the text isn't a date."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return day if 2000 <= day.year < 3000 else None


def require_confirmed(form: Mapping[str, str], texts: Collection[str], named: str) -> None:
    """Checks that the person typed one of the texts. named: a noun for them. Raises NotAcceptable."""
    if form.get("confirmation", "").strip() not in {text.strip() for text in texts}:
        raise NotAcceptable(f"That isn't {named}. Nothing was deleted.")
