"""Example values of schemas: the declared ones, or values composed from the parts."""

from typing import Any

_BY_FORMAT = {
    "date-time": "2026-03-04T05:06:07.000Z",
    "email": "ada@example.com",
    "uri": "https://example.com",
}
_SCHEMAS = "#/components/schemas/"
_BY_TYPE: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "string": "string", "null": None}


class Samples:
    """Composes examples from the schemas of one document. Recursive schemas end with an empty value."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """Resolves a reference; keywords next to the reference override the target's.

        A schema without a title gets its name as the title.
        """
        seen = set()
        while "$ref" in node:
            reference = node["$ref"]
            if reference in seen:
                raise ValueError(f"{reference} refers to itself")
            seen.add(reference)
            target: Any = self._document
            for part in reference.removeprefix("#/").split("/"):
                target = target[part.replace("~1", "/").replace("~0", "~")]
            named = {"title": reference.rpartition("/")[2]} if reference.startswith(_SCHEMAS) else {}
            node = {**named, **target, **{name: value for name, value in node.items() if name != "$ref"}}
        return node

    def responses(self, operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Returns the responses of an operation by status.

        An error response has the examples of those errors that the operation has, and their codes and messages as its
        description. Errors that are named after a part of the service belong to the operations that list them.
        """
        own = operation.get("x-errors", ())
        found = {status: self.resolve(response) for status, response in operation["responses"].items()}
        for status, response in found.items():
            for media_type, media in response.get("content", {}).items() if status >= "400" else ():
                shown = {name: one for name, one in media["examples"].items() if "." not in name or name in own}
                texts = dict.fromkeys(_error_text(one["value"]) for one in shown.values())
                content = {media_type: {**media, "examples": shown}}
                found[status] = {**response, "description": "\n\n".join(texts), "content": content}
        return found

    def examples(self, media: dict[str, Any]) -> dict[str, Any]:
        """Returns the examples of a body by name: those that the document has, or one of each shape of the schema."""
        if "example" in media:
            return {"": media["example"]}
        if "examples" in media:
            return {name: self.resolve(one)["value"] for name, one in media["examples"].items()}
        node = self.merge(media["schema"])
        data = node.get("properties", {}).get("data")
        if data is None or not (shapes := self.variants(self.merge(data)))[1:]:
            return {"": self.of(node)}
        return {shape["title"]: {**self.of(node), "data": self.of(shape)} for shape in shapes}

    def is_list(self, operation: dict[str, Any]) -> bool:
        """Returns True if the operation returns a list."""
        for status, response in operation["responses"].items():
            for media in self.resolve(response).get("content", {}).values() if status < "400" else ():
                data = self.merge(media.get("schema", {})).get("properties", {}).get("data", {})
                if self.resolve(data).get("type") == "array":
                    return True
        return False

    def of_parameter(self, node: dict[str, Any]) -> Any:
        """Returns the first example of a parameter, or a value of its schema. A mere string's is `{name}`."""
        for one in node.get("examples", {}).values():
            return self.resolve(one).get("value")
        sample = node.get("example", self.of(node.get("schema", {})))
        return f"{{{node['name']}}}" if sample == "string" else sample

    def merge(self, node: dict[str, Any]) -> dict[str, Any]:
        """Resolves the node and merges the parts of its `allOf`."""
        node = self.resolve(node)
        if "allOf" not in node:
            return node
        merged: dict[str, Any] = {}
        for part in [*node["allOf"], {name: value for name, value in node.items() if name != "allOf"}]:
            whole = self.merge(part)
            properties = {**merged.get("properties", {}), **whole.get("properties", {})}
            required = [*merged.get("required", []), *whole.get("required", [])]
            merged = {**merged, **whole}
            if properties:
                merged |= {"properties": properties, "required": required}
        return merged

    def variants(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the options of a union without null, or the node itself if it isn't a union.

        If a node has properties of its own, its union only defines which of them can be combined.
        """
        options = node.get("anyOf") or node.get("oneOf")
        if not options or "properties" in node:
            return [node]
        merged = [self.merge(option) for option in options]
        return [option for option in merged if option.get("type") != "null"] or merged

    def of(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """Returns one value of the schema: the declared example, else the default, else one of its type."""
        node = self.merge(schema)
        if "example" in node:
            return node["example"]
        if node.get("examples"):
            return node["examples"][0]
        for name in ("const", "default"):
            if node.get(name) is not None:
                return node[name]
        if node.get("enum"):
            return node["enum"][0]
        if self.variants(node) != [node]:
            return self.of(self.variants(node)[0], depth)
        return self._composed(node, depth)

    def _composed(self, node: dict[str, Any], depth: int) -> Any:
        too_deep = depth > 8
        kinds = node.get("type", "object" if "properties" in node else "string")
        kind = next((it for it in kinds if it != "null"), "null") if isinstance(kinds, list) else kinds
        if kind == "array":
            return [] if too_deep or "items" not in node else [self.of(node["items"], depth + 1)]
        if kind == "object":
            shown = {} if too_deep else node.get("properties", {})
            return {
                name: self.of(child, depth + 1)
                for name, child in shown.items()
                if not self.merge(child).get("deprecated") or name in node.get("required", [])
            }
        return _BY_FORMAT.get(node.get("format", ""), _BY_TYPE.get(kind))


def _error_text(body: dict[str, Any]) -> str:
    error = body["error"]
    code, message = (error["code"], error["message"]) if isinstance(error, dict) else (error, body["error_description"])
    return f"`{code}`: {message}"
