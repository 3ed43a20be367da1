"""`assent-ops intake`: sends external findings to the intake manually, validated as the intake does."""

import json
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from controlplane.findings.intake import ACCEPTED, Finding
from ops.arguments import new_group
from ops.errors import Refused
from ops.output import Result
from ops.target import find_queue

app = new_group("Findings from other systems.")


@app.command("send")
def send_file(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file with a message or a list of messages; - for stdin.")
    ],
) -> Result:
    """Send the messages in a file. Sends nothing unless all of them are valid."""
    try:
        text = file.read()
    except UnicodeDecodeError:
        raise Refused("The file isn't valid UTF-8.") from None
    messages = read_messages(text)
    client, url = find_queue("FindingIntakeQueue", "FINDING_INTAKE_QUEUE_URL")
    sent = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in messages]
    for document in sent:
        client.send_message(QueueUrl=url, MessageBody=json.dumps(document))
    return Result(sent, "Sent. The finding will appear in the inbox shortly.")


def read_messages(text: str) -> list[Finding]:
    """Parses a JSON document with one message or a list. Raises Refused with the path of the invalid field."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Refused(f"The file isn't valid JSON: {error}.") from None
    return [_check(entry, at) for at, entry in enumerate(found if isinstance(found, list) else [found])]


def read_message(**fields: Any) -> Finding:
    """Builds a message from fields by their JSON names, omitting None and empty lists. Raises Refused."""
    return _check({"version": 1, **{name: value for name, value in fields.items() if value not in (None, [])}}, 0)


def _check(entry: Any, at: int) -> Finding:
    try:
        return ACCEPTED.validate_json(json.dumps(entry))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, found['loc'][1:])) or 'kind'}: {found['msg']}" for found in error.errors()]
        raise Refused(f"Message {at + 1} is malformed. {'; '.join(problems)}") from None
