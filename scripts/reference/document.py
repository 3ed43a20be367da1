"""What docs/openapi.json says, as a reader is told it: tags, operations, fields in words, examples."""

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from scripts.reference.samples import Samples

# Where the API and its pages are, until they are served: the function puts its own addresses in their place.
API_ADDRESS = "https://api.assent.example"
PAGES_ADDRESS = "https://dashboard.assent.example"
FORM = "application/x-www-form-urlencoded"
# Headers that every answer has. The introduction explains them once.
_USUAL_HEADERS = {"x-request-id", "cache-control", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
# The document's own sentence on credentials. It is told apart here, but for the role, which stands there alone.
_NEEDS = re.compile(r"\n*Needs (?:[^\n.]|\.(?=\w))*?(?:, of (?P<role>an? [a-z ]+))?\.\s*$")
_CREDENTIALS = {"organizationApiKey", "userToken"}
_NAMES = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No content",
    302: "Found",
    303: "See other",
    304: "Not modified",
    400: "Bad request",
    401: "Unauthorized",
    402: "Payment required",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Internal server error",
    503: "Service unavailable",
}


@dataclass
class Field:
    """One member of a body, or one parameter. `facts` are its bounds in words, as Markdown."""

    name: str
    type: str
    required: bool
    description: str = ""
    deprecated: bool = False
    facts: list[str] = field(default_factory=list)
    children: list["Field"] = field(default_factory=list)
    variants: list["Variant"] = field(default_factory=list)


@dataclass
class Variant:
    """One of several shapes that a value may have."""

    title: str
    description: str
    fields: list[Field]


@dataclass
class Example:
    """A value in the media type that it is sent or answered in."""

    title: str
    value: Any
    media_type: str

    @property
    def text(self) -> str:
        if isinstance(self.value, str):
            return self.value
        if self.media_type == FORM:
            return urlencode(self.value)
        return json.dumps(self.value, indent=2, ensure_ascii=False)


@dataclass
class Body:
    """What is sent, or answered, in one media type."""

    media_type: str
    type: str
    variants: list[Variant]
    examples: list[Example]
    is_paged: bool = False
    is_enveloped: bool = False


@dataclass
class Answer:
    status: str
    name: str
    description: str
    headers: list[Field]
    bodies: list[Body]

    @property
    def is_success(self) -> bool:
        return self.status < "400"


@dataclass
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    credential: str
    scopes: list[str]
    role: str | None
    deprecated: bool
    parameters: dict[str, list[Field]]
    body_required: bool
    bodies: list[Body]
    answers: list[Answer]
    request: str

    @property
    def other_requests(self) -> list[Example]:
        """The bodies that could be sent in the place of the one in the request."""
        return [example for body in self.bodies for example in body.examples][1:]

    @property
    def successes(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.is_success]

    @property
    def refusals(self) -> list[Answer]:
        return [answer for answer in self.answers if not answer.is_success]


@dataclass
class Tag:
    name: str
    slug: str
    description: str
    operations: list[Operation]


def slug(text: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def plain(value: Any) -> str:
    """A JSON value between backticks."""
    return f"`{json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value}`"


class Reader:
    """Reads one OpenAPI document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._samples = Samples(document)

    def tags(self) -> list[Tag]:
        """The tags in the document's order, each with its operations by path; tags it does not list come last."""
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
        description = node.get("description", "")
        needs = _NEEDS.search(description)
        raw = [self._samples.resolve(parameter) for parameter in [*shared, *node.get("parameters", [])]]
        raw.sort(key=lambda one: path.find("{" + one["name"] + "}") if one["in"] == "path" else 0)
        body = self._samples.resolve(node.get("requestBody", {}))
        bodies = self._bodies(body, is_request=True)
        security = node.get("security", self._document.get("security", []))
        return Operation(
            id=node["operationId"],
            method=method.upper(),
            path=path,
            summary=node.get("summary", node["operationId"]),
            description=_NEEDS.sub("", description).strip(),
            credential=_credential(security),
            scopes=node.get("x-required-scopes", []),
            role=needs["role"] if needs else None,
            deprecated=node.get("deprecated", False),
            parameters={
                place: [self._parameter(one) for one in raw if one["in"] == place]
                for place in ("path", "query", "header")
                if any(one["in"] == place for one in raw)
            },
            body_required=body.get("required", False),
            bodies=bodies,
            answers=[self._answer(status, answer) for status, answer in sorted(node["responses"].items())],
            request=self._curl(method.upper(), path, raw, bodies, needs_token=bool(security)),
        )

    def _parameter(self, node: dict[str, Any]) -> Field:
        schema = node.get("schema", {})
        read = self.field(node["name"], schema, required=node.get("required", False))
        read.description = node.get("description") or read.description
        # Nobody can send null there.
        read.type = read.type.removesuffix(" or null")
        read.deprecated = read.deprecated or node.get("deprecated", False)
        return read

    def _answer(self, status: str, node: dict[str, Any]) -> Answer:
        resolved = self._samples.resolve(node)
        headers = []
        for name, header in resolved.get("headers", {}).items():
            if name.lower() not in _USUAL_HEADERS:
                whole = self._samples.resolve(header)
                headers.append(Field(name, "", required=False, description=whole.get("description", "")))
        name = _NAMES.get(int(status), "") if status.isdigit() else "Any other"
        description = resolved.get("description", "")
        if description.rstrip(".") in {"Success", "Successful Response", "The answer", name}:
            description = ""
        return Answer(status, name, description, headers, self._bodies(resolved, is_request=False))

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
        variants = self._shapes(data) + [variant for shape in rest for variant in self._shapes(shape)]
        if len(variants) > len(self._shapes(data)):
            variants = [
                Variant(
                    one.title or ("In the envelope" if n == 0 else "Without the envelope"), one.description, one.fields
                )
                for n, one in enumerate(variants)
            ]
        paged = enveloped and "pagination" in shapes[0]["properties"]
        return Body(media_type, self.type_of(data), variants, examples, paged, enveloped)

    def _examples(self, media_type: str, content: dict[str, Any], schema: dict[str, Any]) -> list[Example]:
        if "example" in content:
            return [Example("", content["example"], media_type)]
        named = [
            Example(one.get("summary", name), one["value"], media_type)
            for name, one in ((name, self._samples.resolve(one)) for name, one in content.get("examples", {}).items())
            if "value" in one
        ]
        return named or ([Example("", self._samples.of(schema), media_type)] if schema else [])

    def _shapes(self, schema: dict[str, Any]) -> list[Variant]:
        """The shapes of an object, or of the items of a list, with their fields."""
        node = self._samples.merge(schema)
        if node.get("type") == "array":
            return self._shapes(node.get("items", {}))
        shapes = [shape for shape in self._samples.variants(node) if shape.get("properties")]
        if any(shape.get("type") == "array" for shape in self._samples.variants(node)) and not shapes:
            return [variant for shape in self._samples.variants(node) for variant in self._shapes(shape)]
        several = len(shapes) > 1
        return [
            Variant(
                _spaced(shape.get("title", "")) if several else "", shape.get("description", ""), self._fields(shape)
            )
            for shape in shapes
        ]

    def _fields(self, node: dict[str, Any], ancestors: tuple[str, ...] = ()) -> list[Field]:
        required = node.get("required", [])
        return [
            self.field(name, child, required=name in required, ancestors=ancestors)
            for name, child in node.get("properties", {}).items()
        ]

    def field(self, name: str, schema: dict[str, Any], *, required: bool, ancestors: tuple[str, ...] = ()) -> Field:
        """The field in words, with the fields inside it."""
        node = self._samples.merge(schema)
        (only, *others) = self._samples.variants(node)
        read = Field(
            name,
            self.type_of(schema),
            required,
            node.get("description") or only.get("description", ""),
            node.get("deprecated", False),
            self._facts(node),
        )
        inner = self._samples.merge(only.get("items", {})) if only.get("type") == "array" else only
        title = inner.get("title", "")
        if title and title in ancestors:
            return read
        deeper = (*ancestors, title)
        if others and inner.get("properties"):
            read.variants = [
                Variant(_spaced(shape.get("title", "")), shape.get("description", ""), self._fields(shape, deeper))
                for shape in (only, *others)
            ]
        elif inner.get("properties"):
            read.children = self._fields(inner, deeper)
        return read

    def type_of(self, schema: dict[str, Any]) -> str:
        """`string`, `array of objects`, `integer or null`."""
        node = self._samples.merge(schema)
        if self._samples.variants(node) != [node]:
            options = [self.type_of(option) for option in node.get("anyOf") or node["oneOf"]]
            return " or ".join(dict.fromkeys(options))
        kinds = node.get("type")
        if isinstance(kinds, list):
            return " or ".join(self.type_of({**node, "type": kind}) for kind in kinds)
        if kinds == "array":
            of = self.type_of(node["items"]) if "items" in node else ""
            return f"array of {of}s" if re.fullmatch(r"[a-z]+", of) else f"array of ({of})" if of else "array"
        if kinds is None:
            return "object" if "properties" in node else _type_of_value(node)
        return str(kinds)

    def _facts(self, node: dict[str, Any]) -> list[str]:
        """What bounds a value, in words."""
        facts: list[str] = []
        for one in self._samples.variants(node):
            if one.get("type") == "array":
                facts += _between(one.get("minItems"), one.get("maxItems"), "item")
                if one.get("uniqueItems"):
                    facts.append("no repeated ones")
                facts += [f"each {fact}" for fact in self._facts(self._samples.merge(one.get("items", {})))]
            if "enum" in one:
                facts.append(f"one of {', '.join(plain(value) for value in one['enum'])}")
            if "const" in one:
                facts.append(f"always {plain(one['const'])}")
            facts += _between(one.get("minLength"), one.get("maxLength"), "character")
            facts += _between(one.get("minimum"), one.get("maximum"), "")
            if "format" in one:
                facts.append(
                    {"date-time": "RFC 3339 time", "uri": "URI", "email": "email address"}.get(
                        one["format"], one["format"]
                    )
                )
            # A longer one is for programs, and they have the document.
            if len(one.get("pattern", "")) in range(1, 50):
                facts.append(f"matches {plain(one['pattern'])}")
        if node.get("default") is not None and "const" not in node:
            facts.append(f"{plain(node['default'])} where left out")
        return list(dict.fromkeys(facts))

    def _curl(
        self, method: str, path: str, parameters: list[dict[str, Any]], bodies: list[Body], *, needs_token: bool
    ) -> str:
        """The request on a command line, with an example in the place of what differs."""
        values = {one["name"]: self._parameter_sample(one) for one in parameters}
        for one in parameters:
            if one["in"] == "path":
                path = path.replace("{" + one["name"] + "}", quote(str(values[one["name"]]), safe=""))
        query = {one["name"]: values[one["name"]] for one in parameters if one["in"] == "query" and one.get("required")}
        url = API_ADDRESS + path + (f"?{urlencode(query)}" if query else "")
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
    """Which credentials an operation takes: `none`, `user`, or `any`."""
    kinds = {kind for one in security for kind in one}
    if unknown := kinds - _CREDENTIALS:
        raise ValueError(f"nothing is said here of the credential {', '.join(sorted(unknown))}")
    return "any" if "organizationApiKey" in kinds else "user" if kinds else "none"


def _type_of_value(node: dict[str, Any]) -> str:
    for value in [*node.get("enum", []), *([node["const"]] if "const" in node else [])]:
        return {str: "string", bool: "boolean", int: "integer", float: "number"}.get(type(value), "")
    return "any value" if node.keys() - {"description", "title"} == set() else ""


def _spaced(title: str) -> str:
    """`ScanNotStarted` as `Scan not started`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f" {match[1].lower()}", title)


def _between(least: int | None, most: int | None, unit: str) -> list[str]:
    """`3 to 20 characters`, `at most 512 characters`."""
    number = most if most is not None else least
    noun = f" {unit}{'' if number == 1 else 's'}" if unit else ""
    if least is not None and most is not None:
        return [f"{least:,}{noun}" if least == most else f"{least:,} to {most:,}{noun}"]
    if most is not None:
        return [f"at most {most:,}{noun}"]
    # Not empty, and not negative, is what everybody expects.
    return [f"at least {least:,}{noun}"] if least is not None and least > (1 if unit else 0) else []
