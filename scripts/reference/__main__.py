"""Writes the reference into the package of the `system` function."""

from scripts.openapi.texts import DOCUMENT
from scripts.reference.site import TARGET, build


def main() -> None:
    """Writes every file and removes those that are no longer made."""
    files_by_name = build(DOCUMENT.read_text(encoding="utf-8"))
    TARGET.mkdir(exist_ok=True)
    for path in TARGET.iterdir():
        if path.name not in files_by_name:
            path.unlink()
    for name, text in files_by_name.items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
