"""Writes the reference into the package of the `system` function."""

from scripts.openapi.words import DOCUMENT
from scripts.reference.site import TARGET, build


def main() -> None:
    """Writes every file and removes those that are no longer made."""
    made = build(DOCUMENT.read_text(encoding="utf-8"))
    TARGET.mkdir(exist_ok=True)
    for path in TARGET.iterdir():
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
