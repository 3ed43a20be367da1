"""The floor: a recorded request's DynamoDB calls through boto3's client, sequentially, then its recorded response.

No framework, no validation, no log line. Everything that a function costs beyond this is its own overhead.
`FLOOR_RECORDING` names the file with the calls and the response.
"""

import base64
import json
import os
from pathlib import Path

import boto3
from botocore.exceptions import ClientError

client = boto3.client("dynamodb")


def _binary(value):
    """Decodes binary attributes: base64 in JSON, bytes in boto3."""
    if isinstance(value, dict):
        if set(value) == {"B"} and isinstance(value["B"], str):
            return {"B": base64.b64decode(value["B"])}
        return {name: _binary(inner) for name, inner in value.items()}
    return [_binary(inner) for inner in value] if isinstance(value, list) else value


def _method(operation):
    return getattr(client, "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_"))


recording = json.loads(Path(os.environ["FLOOR_RECORDING"]).read_text())
calls = [(_method(call["operation"]), _binary(call["params"]), call["status"] == 200) for call in recording["calls"]]
answer = recording["answer"]
is_json = answer["headers"].get("content-type", "").startswith("application/json")
body = json.loads(answer["body"] or "null") if is_json else None


def handler(_event, _context):
    for method, params, succeeds in calls:
        try:
            method(**params)
        except ClientError:
            if succeeds:
                raise
    return {**answer, "body": json.dumps(body) if is_json else answer["body"]}
