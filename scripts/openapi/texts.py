"""The fixed parts of the document, from document.yaml, its addresses, and its path."""

from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
DOCUMENT = _FOLDER.parents[1] / "docs" / "openapi.json"
FIXED: dict[str, Any] = yaml.safe_load((_FOLDER / "document.yaml").read_text(encoding="utf-8"))
ABOUT = (_FOLDER / "introduction.md").read_text(encoding="utf-8").rstrip("\n")
# A deployment serves the documents with its own addresses in place of these two.
BASE_URL: str = FIXED["servers"][0]["url"]
PAGES_URL = "https://dashboard.assent.example"
