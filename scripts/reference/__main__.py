"""Writes the reference, or with `--check` compares it with what stands there."""

import argparse
import json
import sys

from scripts.openapi.words import DOCUMENT
from scripts.reference.site import TARGET, build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a file differs from what the document gives")
    options = parser.parse_args()
    made = {name: text.encode() for name, text in build(json.loads(DOCUMENT.read_text(encoding="utf-8"))).items()}
    found = {path.name: path.read_bytes() for path in TARGET.glob("*")}
    if options.check:
        wrong = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
        if wrong:
            sys.exit(
                f"{TARGET.name}/ is not what the API's document gives ({', '.join(wrong[:5])}): run `make openapi`"
            )
        return
    TARGET.mkdir(exist_ok=True)
    for name in found.keys() - made.keys():
        (TARGET / name).unlink()
    for name, content in made.items():
        if found.get(name) != content:
            (TARGET / name).write_bytes(content)


if __name__ == "__main__":
    main()
