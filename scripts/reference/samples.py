"""Example values of schemas: the declared ones, or values composed from the parts."""

from typing import Any, Final

# Samples of values that have no example of their own, by format or type.
_SAMPLES: Final = {"date-time": "2026-03-04T05:06:07.000Z", "boolean": True}


class Samples:
    """Composes examples from the schemas of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        """Resolves a reference; keywords next to the reference override the target's.

        A schema without a title gets its name as the title.
        """
        while "$ref" in node:
            *folders, name = node["$ref"].removeprefix("#/").split("/")
            target: Any = self._document
            for part in (*folders, name):
                target = target[part]
            named = {"title": name} if folders[-1] == "schemas" else {}
            node = {**named, **target, **{key: value for key, value in node.items() if key != "$ref"}}
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

    def of(self, schema: dict[str, Any]) -> Any:
        """Returns one value of the schema: the declared example, or one that is composed of its parts' examples.

        A deprecated field is left out unless it is required. Raises SystemExit if a part has no example.
        """
        node = self.merge(schema)
        if node.get("examples"):
            return node["examples"][0]
        for name in ("const", "default"):
            if node.get(name) is not None:
                return node[name]
        if self.variants(node) != [node]:
            return self.of(self.variants(node)[0])
        if node.get("type") == "array":
            return [self.of(node["items"])]
        if "properties" in node:
            return {
                name: self.of(child)
                for name, child in node["properties"].items()
                if not self.merge(child).get("deprecated") or name in node.get("required", [])
            }
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        sample = _SAMPLES.get(node.get("format") or types[0])
        if sample is not None:
            return sample
        raise SystemExit(f"add an example to the field in the model: {node}")


def _error_text(body: dict[str, Any]) -> str:
    error = body["error"]
    code, message = (error["code"], error["message"]) if isinstance(error, dict) else (error, body["error_description"])
    return f"`{code}`: {message}"
