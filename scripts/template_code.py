"""Writes the templates of the pages as modules: `python -m scripts.template_code FOLDER`.

A cold start then neither reads nor compiles a template. Needs the environment of the application (.venv), not SAM's.
"""

import sys
from pathlib import Path

from scripts.dataclass_code import make_importable


def main() -> None:
    make_importable()
    from dashboard import pages  # noqa: PLC0415 (importable only now)

    pages.compile_templates(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
