"""`assent api`: any request to the API, for what has no command of its own."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

import typer

from openassent_cli.commands.shared import Group
from openassent_cli.finding import organization_id
from openassent_cli.invocation import invocation, note
from openassent_cli.output import print_json
from openassent_cli.printable import printable_line
from openassent_cli.problems import Exit, Problem

if TYPE_CHECKING:
    from openassent import Assent

app = Group()
_ORGANIZATION = "{org}"


class Method(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


@app.add(
    "api",
    "assent api GET /v1/billing",
    "assent api GET /v1/audit-log --paginate",
    "assent api POST /v1/api-keys --field name=CI",
)
def api(
    *,
    method: Annotated[
        Method, typer.Argument(metavar="METHOD", case_sensitive=False, help="GET, POST, PUT, PATCH, or DELETE.")
    ],
    path: Annotated[str, typer.Argument(help="The path, such as /v1/billing. {org} is the organization's ID.")],
    field: Annotated[
        list[str] | None, typer.Option("--field", "-f", metavar="NAME=VALUE", help="A field; repeatable.")
    ] = None,
    source: Annotated[
        typer.FileText | None,
        typer.Option("--input", metavar="FILE", encoding="utf-8", help="The body, as JSON; - is standard input."),
    ] = None,
    paginate: Annotated[bool, typer.Option("--paginate", help="Print all pages of a list.")] = False,
) -> None:
    """Send a request to the API, and print the data of its response as JSON.

    Fields are sent in the body, or in the query of GET, DELETE, and requests with --input. In the body, a value that is
    JSON, such as true, 5, or ["a"], is sent as that, and any other as a string.
    """
    if paginate and method is not Method.GET:
        raise Problem("Only lists have pages.", "Leave out --paginate.", Exit.USAGE)
    address, _, written = path.partition("?")
    query, fields = dict(parse_qsl(written, keep_blank_values=True)), dict(map(_field, field or ()))
    body = _read(source) if source else None
    if source or method in {Method.GET, Method.DELETE}:
        query |= fields
    elif fields:
        body = {name: field_value(text) for name, text in fields.items()}
    with invocation().client() as client:
        if _ORGANIZATION in path:
            chosen = _organization(client)
            address = address.replace(_ORGANIZATION, chosen)
            query = {name: value.replace(_ORGANIZATION, chosen) for name, value in query.items()}
        if paginate:
            print_json(_items(client, address, query))
        else:
            document = client.send(method, address, query=query, body=body)
            from openassent._bodies import warnings_of  # noqa: PLC0415 (imports the SDK)

            for warning in warnings_of(document):
                note(f"Warning: {printable_line(warning)}")
            print_json(document.get("data", document))


def _field(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not (name and equals):
        raise Problem(f"{written} isn't a field.", "Write it as name=value.", Exit.USAGE)
    return name, value


def field_value(text: str) -> Any:
    """Returns the value of a JSON text, or another text unchanged."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return value


def _read(source: typer.FileText) -> dict[str, Any]:
    try:
        body = field_value(source.read())
    except ValueError:  # not UTF-8
        body = None
    if not isinstance(body, dict):
        raise Problem(f"{source.name} has no JSON object.", code=Exit.USAGE)
    return body


def _organization(client: "Assent") -> str:
    chosen = invocation().settings().organization
    if chosen is None:
        raise Problem("No organization is chosen.", "Give --org, or run `assent org use`.", Exit.USAGE)
    return organization_id(client, chosen)


def _items(client: "Assent", address: str, query: dict[str, str]) -> list[Any]:
    """Returns the items of all pages of a list."""
    items: list[Any] = []
    while True:
        document = client.send("GET", address, query=query)
        page, pagination = document.get("data"), document.get("pagination")
        if not isinstance(page, list):
            raise Problem("The response isn't a list.", "Leave out --paginate.", Exit.USAGE)
        items += page
        cursor = pagination.get("nextCursor") if isinstance(pagination, dict) else None
        if not isinstance(cursor, str):
            return items
        query = {**query, "cursor": cursor}
