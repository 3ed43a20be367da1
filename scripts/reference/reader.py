"""Converts an OpenAPI document into the data that the reference's templates render."""

import re
import shlex
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from scripts.openapi.texts import BASE_URL
from scripts.reference import calls
from scripts.reference.document import Body, Example, Field, Operation, Response, Tag, Variant, slug
from scripts.reference.fields import Fields, title_in_words
from scripts.reference.samples import Samples

# Headers of every response. The introduction explains them once.
_COMMON_HEADERS = {"x-request-id", "cache-control", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
# The sentence on credentials that ends each description. The reference shows the credential as a field instead.
_CREDENTIAL_SENTENCE = re.compile(r"\n*Needs (?:[^\n.]|\.(?=\w))*\.\s*$")
_CREDENTIALS = {"organizationApiKey", "userToken"}


class Reader:
    """Reads one OpenAPI document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._samples = Samples(document)
        self._fields = Fields(self._samples)

    def tags(self) -> list[Tag]:
        """Returns the tags in the document's order, each with its operations by path. Unlisted tags come last."""
        described = {tag["name"]: tag.get("description", "") for tag in self._document.get("tags", [])}
        grouped: dict[str, list[Operation]] = {name: [] for name in described}
        for path, item in self._document["paths"].items():
            for method in ("get", "post", "put", "patch", "delete"):
                if method in item:
                    operation = item[method]
                    shared = item.get("parameters", [])
                    read = self._operation(method, path, operation, shared)
                    grouped.setdefault((operation.get("tags") or ["Other"])[0], []).append(read)
        return [
            Tag(name, slug(name), described.get(name, ""), operations)
            for name, operations in grouped.items()
            if operations
        ]

    def _operation(self, method: str, path: str, node: dict[str, Any], shared: list[dict[str, Any]]) -> Operation:
        node = self._with_forms({**node, "responses": self._samples.responses(node)})
        description = node.get("description", "")
        roles = node.get("x-required-roles", [])
        raw = [self._samples.resolve(parameter) for parameter in [*shared, *node.get("parameters", [])]]
        raw.sort(key=lambda one: path.find("{" + one["name"] + "}") if one["in"] == "path" else 0)
        body = self._samples.resolve(node.get("requestBody", {}))
        bodies = self._bodies(body, is_request=True)
        security = node.get("security", self._document.get("security", []))
        responses = [self._response(status, response) for status, response in sorted(node["responses"].items())]
        is_list = any(body.type.startswith("array") for one in responses if one.is_success for body in one.bodies)
        return Operation(
            id=node["operationId"],
            method=method.upper(),
            path=path,
            summary=node.get("summary", node["operationId"]),
            description=_CREDENTIAL_SENTENCE.sub("", description).strip(),
            credential=_credential(security),
            scopes=node.get("x-required-scopes", []),
            role=f"an {' or '.join(roles)}" if roles else None,
            deprecated=node.get("deprecated", False),
            parameters={
                place: [self._parameter(one) for one in raw if one["in"] == place]
                for place in ("path", "query", "header")
                if any(one["in"] == place for one in raw)
            },
            body_required=body.get("required", False),
            bodies=bodies,
            responses=responses,
            request=self._curl(
                method.upper(), path, raw, bodies if body.get("required") else [], needs_token=bool(security)
            ),
            command=calls.command(node["operationId"]),
            program=calls.program(node["operationId"], is_list=is_list, needs_token=bool(security)),
        )

    def _with_forms(self, node: dict[str, Any]) -> dict[str, Any]:
        """Returns the operation with its form-encoded requests, and the responses to them, next to those in JSON."""
        if "x-form-encoded" not in node:
            return node
        form = node["x-form-encoded"]
        content = {**node["requestBody"]["content"], **form["requestBody"]["content"]}
        bare = self._samples.responses(form)
        responses = bare | node["responses"]
        for status in node["responses"].keys() & bare.keys():
            responses[status] = self._either(node["responses"][status], bare[status])
        return {**node, "requestBody": {**node["requestBody"], "content": content}, "responses": responses}

    def _either(self, enveloped: dict[str, Any], bare: dict[str, Any]) -> dict[str, Any]:
        """Returns a response with both bodies."""
        content = {}
        for media_type, media in enveloped["content"].items():
            other = bare["content"][media_type]
            shown = {name or "In the envelope": value for name, value in self._samples.examples(media).items()}
            shown["For form-encoded requests"] = next(iter(self._samples.examples(other).values()))
            examples = {name: {"value": value} for name, value in shown.items()}
            content[media_type] = {"schema": {"oneOf": [media["schema"], other["schema"]]}, "examples": examples}
        about = f"{enveloped['description']}\n\nFor form-encoded requests: {bare['description']}"
        return {**enveloped, "description": about, "content": content}

    def _parameter(self, node: dict[str, Any]) -> Field:
        schema = node.get("schema", {})
        read = self._fields.read(node["name"], schema, required=node.get("required", False))
        read.description = node.get("description") or read.description
        # Parameters can't be null.
        read.type = read.type.removesuffix(" or null")
        read.deprecated = read.deprecated or node.get("deprecated", False)
        return read

    def _response(self, status: str, node: dict[str, Any]) -> Response:
        resolved = self._samples.resolve(node)
        headers = []
        for name, header in resolved.get("headers", {}).items():
            if name.lower() not in _COMMON_HEADERS:
                whole = self._samples.resolve(header)
                headers.append(Field(name, "", required=False, description=whole.get("description", "")))
        name = _status_name(status)
        description = resolved.get("description", "")
        if description.rstrip(".") in {"Success", "Successful Response", name}:
            description = ""
        return Response(status, name, description, headers, self._bodies(resolved, is_request=False))

    def _bodies(self, node: dict[str, Any], *, is_request: bool) -> list[Body]:
        return [
            self._body(media_type, content, is_request=is_request)
            for media_type, content in node.get("content", {}).items()
        ]

    def _body(self, media_type: str, content: dict[str, Any], *, is_request: bool) -> Body:
        schema = self._samples.merge(content.get("schema", {}))
        examples = self._examples(media_type, content, schema)
        shapes = self._samples.variants(schema)
        enveloped = not is_request and "data" in shapes[0].get("properties", {})
        data, rest = (shapes[0]["properties"]["data"], shapes[1:]) if enveloped else (schema, [])
        variants = self._fields.shapes(data)
        bare = [variant for shape in rest for variant in self._fields.shapes(shape)]
        if bare:
            variants = [
                Variant(
                    one.title or ("In the envelope" if n == 0 else "Without the envelope"), one.description, one.fields
                )
                for n, one in enumerate([*variants, *bare])
            ]
        paged = enveloped and "pagination" in shapes[0]["properties"]
        return Body(media_type, self._fields.type_of(data), variants, examples, paged, enveloped)

    def _examples(self, media_type: str, content: dict[str, Any], schema: dict[str, Any]) -> list[Example]:
        if "example" in content:
            return [Example("", content["example"], media_type)]
        titles = {name: one["summary"] for name, one in content.get("examples", {}).items() if "summary" in one}
        shown = self._samples.examples({**content, "schema": schema}) if schema or "examples" in content else {}
        return [Example(titles.get(name, title_in_words(name)), value, media_type) for name, value in shown.items()]

    def _curl(
        self, method: str, path: str, parameters: list[dict[str, Any]], bodies: list[Body], *, needs_token: bool
    ) -> str:
        """Returns the request as a curl command with example values."""
        values = {one["name"]: self._parameter_sample(one) for one in parameters}
        for one in parameters:
            if one["in"] == "path":
                path = path.replace("{" + one["name"] + "}", quote(str(values[one["name"]]), safe=""))
        query = {one["name"]: values[one["name"]] for one in parameters if one["in"] == "query" and one.get("required")}
        url = BASE_URL + path + (f"?{urlencode(query)}" if query else "")
        lines = [f"curl {shlex.quote(url)}"]
        if method != "GET" and not (method == "POST" and bodies):
            lines[0] = f"curl -X {method} {shlex.quote(url)}"
        if needs_token:
            lines.append('-H "Authorization: Bearer $TOKEN"')
        if bodies:
            lines.append(f"-H 'Content-Type: {bodies[0].media_type}'")
            text = bodies[0].examples[0].text
            lines.append(f"-d {shlex.quote(text.replace('\n', '\n  '))}")
        return " \\\n  ".join(lines)

    def _parameter_sample(self, node: dict[str, Any]) -> Any:
        if "example" in node:
            return node["example"]
        for one in node.get("examples", {}).values():
            return self._samples.resolve(one).get("value")
        sample = self._samples.of(node.get("schema", {}))
        return f"{{{node['name']}}}" if sample == "string" else sample


def _credential(security: list[dict[str, list[str]]]) -> str:
    """Returns which credentials an operation accepts: `none`, `user`, or `any`."""
    kinds = {kind for one in security for kind in one}
    if unknown := kinds - _CREDENTIALS:
        raise ValueError(f"unknown credential: {', '.join(sorted(unknown))}")
    return "any" if "organizationApiKey" in kinds else "user" if kinds else "none"


def _status_name(status: str) -> str:
    """Returns the status's name, such as `Not found` for 404, or an empty string if it is unknown."""
    if not status.isdigit():
        return "Any other"
    try:
        phrase = HTTPStatus(int(status)).phrase
    except ValueError:
        return ""
    return phrase if phrase.isupper() else phrase.capitalize()
