"""Writes the generated modules of the SDK (make sdk): `python -m scripts.sdk [--check]`."""

import argparse
import sys
from pathlib import Path

from scripts.sdk import formatting, models, sync


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    parser.add_argument("--generator", type=Path, default=models.GENERATOR, help="the path of datamodel-codegen")
    options = parser.parse_args()
    for path, text in formatting.formatted(models.texts(options.generator) | sync.texts()).items():
        if options.check and (not path.exists() or path.read_text() != text):
            sys.exit(f"{path.name} is out of date: run `make sdk`")
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
