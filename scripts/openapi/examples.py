"""Examples of bodies with several forms: composed from those of their fields, and changed as document.yaml says.

Other bodies have no examples of their own: readers compose them from the schemas' examples.
"""

from typing import Any

from pydantic.alias_generators import to_snake

from scripts.openapi.schemas import Schema, Schemas
from scripts.openapi.texts import FIXED
from scripts.reference.samples import Samples


def of_request(operation_id: str, schema: Schema, schemas: Schemas, *, oauth: bool = False) -> dict[str, Any]:
    """Returns the `examples` of a request that has several forms. oauth: with OAuth's names of fields."""
    return _of(FIXED["x-requests"].get(operation_id, {}), schema, schemas, oauth=oauth)


def of_response(operation_id: str, schema: Schema, schemas: Schemas) -> dict[str, Any]:
    """Returns the `examples` of an operation's contents (`data`), if they have several forms."""
    return _of(FIXED["x-responses"].get(operation_id, {}), schema, schemas)


def _of(forms: dict[str, Any], schema: Schema, schemas: Schemas, *, oauth: bool = False) -> dict[str, Any]:
    samples = Samples({"components": {"schemas": schemas.collected}})
    examples = {}
    for name, form in forms.items():
        changes = {to_snake(field) if oauth else field: it for field, it in form.get("changes", {}).items()}
        examples[name] = {"summary": form["summary"], "value": _merge(samples.of(schema), changes)}
    return {"examples": examples} if examples else {}


def _merge(value: Any, changes: Any) -> Any:
    """Applies a JSON merge patch, but to a list of objects entry by entry."""
    if isinstance(value, dict) and isinstance(changes, dict):
        merged = {**value, **{name: _merge(value.get(name), change) for name, change in changes.items()}}
        return {name: part for name, part in merged.items() if name not in changes or part is not None}
    if isinstance(value, list) and isinstance(changes, list) and isinstance(value[0], dict):
        return [_merge(value[0], change) for change in changes]
    return changes
