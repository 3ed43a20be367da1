"""The base of all models."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A part of a response. Attributes are in snake case; `model_dump(by_alias=True)` has the names of the API.

    Fields that this version of the package doesn't know are kept in `model_extra`, under the names of the API.
    """

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        # The text of a validation error would contain tokens.
        hide_input_in_errors=True,
        validate_by_name=True,
        validate_by_alias=True,
        # Built on first use: a program uses few of the models, and all of them take a tenth of a second.
        defer_build=True,
    )
