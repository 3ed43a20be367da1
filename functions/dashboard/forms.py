"""Helpers of forms: reading a field, and the error that the page shows above the form."""

from collections.abc import Mapping

from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.core.naming import clean_name


class NotAcceptable(InvalidPayload):
    """A value of the form can't be used. The message says which, and what to enter."""


def read_name(form: Mapping[str, str], field: str) -> str:
    """Returns the name in that field, trimmed. Raises NotAcceptable."""
    name = clean_name(form.get(field, ""))
    if name is None:
        raise NotAcceptable("Enter a name of up to 100 characters.")
    return name
