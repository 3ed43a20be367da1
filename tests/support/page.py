"""A page as a person uses it: controls and fields are found by their labels, and a pressed button sends its form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from types import MappingProxyType

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_FIELDS = ("input", "select", "textarea")
# A person's entry: a text, the text of an option, or whether a box is checked.
type Entry = str | bool


@dataclass(eq=False)
class Element:
    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: "list[Element | str]" = field(default_factory=list)

    def find(self, *tags: str) -> "Iterator[Element]":
        """Yields this element and those below it that have one of the tags."""
        if not tags or self.tag in tags:
            yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.find(*tags)

    def up(self) -> "Iterator[Element]":
        yield self
        if self.parent is not None:
            yield from self.parent.up()

    def text(self, *, seen: bool = False) -> str:
        """Returns the text. `seen` leaves out what only a screen reader reads."""
        return " ".join("".join(self._texts(seen)).split())

    def _texts(self, seen: bool) -> Iterator[str]:
        is_only_heard = "hidden" in self.attributes.get("class", "").split()
        if "hidden" in self.attributes or (seen and is_only_heard) or self.tag in _FIELDS:
            return
        for child in self.children:
            yield from [child] if isinstance(child, str) else child._texts(seen)

    def is_usable(self) -> bool:
        return not any({"disabled", "hidden"} & it.attributes.keys() for it in self.up())

    @property
    def value(self) -> str | None:
        """Returns the value that the field or button sends, or None if it sends nothing."""
        if self.tag == "select":
            options = [it for it in self.find("option") if "disabled" not in it.attributes]
            chosen = next((it for it in options if "selected" in it.attributes), options[0])
            return chosen.attributes.get("value", chosen.text())
        if self.attributes.get("type") in {"checkbox", "radio"} and "checked" not in self.attributes:
            return None
        text = "".join(child for child in self.children if isinstance(child, str))
        return self.attributes.get("value", text.removeprefix("\n"))

    def enter(self, entry: Entry) -> None:
        if isinstance(entry, bool):
            self.attributes.pop("checked", None)
            self.attributes |= {"checked": ""} if entry else {}
        elif self.tag == "select":
            (chosen,) = [it for it in self.find("option") if it.text() == entry and "disabled" not in it.attributes]
            for option in self.find("option"):
                option.attributes.pop("selected", None)
            chosen.attributes["selected"] = ""
        else:
            assert len(entry) <= int(self.attributes.get("maxlength", len(entry))), "the field takes no such long text"
            self.attributes["value"] = entry


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self._open = Element("", {})
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self._open)
        self._open.children.append(element)
        if tag not in _VOID:
            self._open = element

    def handle_endtag(self, tag: str) -> None:
        self._open = next((it.parent for it in self._open.up() if it.tag == tag and it.parent), self._open)

    def handle_data(self, data: str) -> None:
        self._open.children.append(data)

    def controls(self, label: str, near: str = "") -> list[Element]:
        """Returns the usable buttons, or else links, with that label, in the smallest parts that contain `near`."""
        named = [it for it in self.root.find("button", "a") if label in {it.text(), it.text(seen=True)}]
        usable = [it for it in named if it.is_usable()]
        buttons = [it for it in usable if it.tag == "button"]
        parts = [(it, next((up for up in it.up() if near in up.text()), None)) for it in buttons or usable]
        around = {up for _, part in parts if part is not None for up in part.up() if up is not part}
        return [control for control, part in parts if part is not None and part not in around]

    def control(self, label: str, near: str = "") -> Element:
        found = self.controls(label, near)
        different = {it.attributes.get("href", it) for it in found}
        assert len(different) == 1, f"{len(different)} controls have the label {label!r}"
        return found[0]

    def form_of(self, control: Element) -> Element | None:
        if named := control.attributes.get("form"):
            return next(it for it in self.root.find("form") if it.attributes.get("id") == named)
        return next((it for it in control.up() if it.tag == "form"), None)

    def field(self, label: str, form: Element | None = None) -> Element:
        """Returns the usable field of the form, or of the page, whose label has that text, or an element with it."""
        labels = [it for it in self.root.find("label") if any(part.text() == label for part in it.find())]
        named = {it.attributes.get("for") for it in labels}
        fields = [
            it for it in self.root.find(*_FIELDS) if it.attributes.get("id", "") in named or {*labels} & {*it.up()}
        ]
        found = [it for it in fields if it.is_usable() and (form is None or self.form_of(it) is form)]
        assert len(found) == 1, f"{len(found)} fields have the label {label!r}"
        return found[0]

    def send(
        self, button: Element, fill: Mapping[str, Entry], forged: Mapping[str, str | None] = MappingProxyType({})
    ) -> tuple[str, str, list[tuple[str, str]]]:
        """Returns the method, the address, and the fields that a browser sends when the button is pressed.

        forged: fields that are sent instead of the form's, or besides them. None: isn't sent.
        """
        form = self.form_of(button)
        assert form is not None, "the button has no form"
        assert button.attributes.get("type", "submit") == "submit", "the button does nothing without a script"
        for label, entry in fill.items():
            self.field(label, form).enter(entry)
        sent = [(name, value) for name, value in forged.items() if value is not None]
        for it in self.root.find("button", *_FIELDS):
            if self.form_of(it) is not form or (it.tag == "button" and it is not button) or "disabled" in it.attributes:
                continue
            name, value = it.attributes.get("name"), it.value
            if name in forged:
                continue
            assert value or "required" not in it.attributes or "novalidate" in form.attributes, f"{name} is required"
            if name and value is not None:
                sent.append((name, value.replace("\n", "\r\n")))
        action = button.attributes.get("formaction", form.attributes.get("action", ""))
        return form.attributes.get("method", "get"), action, sent
