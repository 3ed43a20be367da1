"""Renders the reference as Markdown: a page per operation, the introduction, all of it in one file, and llms.txt."""

import re

from jinja2 import Environment

from scripts.openapi.texts import BASE_URL
from scripts.reference.document import Field, Operation, Tag

_CREDENTIALS = {
    "none": "none needed",
    "any": "API key or user token",
    "user": "user token only",
}


def credential_words(operation: Operation) -> str:
    return _CREDENTIALS[operation.credential]


def field_lines(fields: list[Field], *, sent: bool, depth: int = 0) -> list[str]:
    """Lists the fields, nested. In requests it marks required fields, in responses fields that may be absent."""
    lines = []
    for one in fields:
        marks = [one.type] if one.type else []
        if one.required and sent:
            marks.append("required")
        elif not one.required and not sent:
            marks.append("may be absent")
        if one.deprecated:
            marks.append("deprecated")
        texts = [", ".join([*marks, *one.facts])]
        texts.append(" ".join(one.description.split()))
        described = ". ".join(text.rstrip(".") for text in texts if text)
        lines.append(f"{'  ' * depth}- `{one.name}`: {described}." if described else f"{'  ' * depth}- `{one.name}`")
        lines += field_lines(one.children, sent=sent, depth=depth + 1)
        for variant in one.variants:
            about = f": {' '.join(variant.description.split())}" if variant.description else ""
            lines.append(f"{'  ' * (depth + 1)}- {variant.title}{about}")
            lines += field_lines(variant.fields, sent=sent, depth=depth + 2)
    return lines


def files(environment: Environment, introduction: str, tags: list[Tag], title: str, about: str) -> dict[str, str]:
    """Returns the content of each Markdown file, by name."""
    operations = [operation for tag in tags for operation in tag.operations]
    pages = {one.id: environment.get_template("operation.md").render(operation=one) for one in operations}
    linked = _absolute_links(introduction, tags)
    lists = environment.get_template("operations.md").render(tags=tags)
    head = f"# {title}\n\n"
    files_by_name = {f"{name}.md": text for name, text in pages.items()}
    files_by_name["introduction.md"] = f"{head}{linked.strip()}\n\n{lists}"
    chapters = [
        f"## {tag.name}\n\n{tag.description}\n\n" + "\n".join(_deeper(pages[one.id]) for one in tag.operations)
        for tag in tags
    ]
    files_by_name["reference.md"] = f"{head}{linked.strip()}\n\n" + "\n".join(chapters)
    files_by_name["llms.txt"] = environment.get_template("llms.txt").render(tags=tags, title=title, about=about)
    return {name: re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" for name, text in files_by_name.items()}


def _absolute_links(text: str, tags: list[Tag]) -> str:
    """Converts links within the page to absolute URLs."""
    pages = {operation.id: f"{BASE_URL}/docs/{operation.id}.md" for tag in tags for operation in tag.operations}

    def address(match: re.Match[str]) -> str:
        return f"]({pages.get(match[1], f'{BASE_URL}/docs/introduction.md#{match[1]}')})"

    return re.sub(r"\]\(#([\w-]+)\)", address, text)


def _deeper(text: str) -> str:
    """Returns the text with its headings two levels deeper. Lines in code blocks aren't headings."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("```") else re.sub(r"^(#+) ", r"##\1 ", part, flags=re.MULTILINE) for part in parts
    )
