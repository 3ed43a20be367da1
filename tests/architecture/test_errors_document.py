"""docs/errors.md and the catalogue name the same codes with the same statuses."""

import re
from pathlib import Path

from controlplane.platform.core.errors import CATALOG, ApiError, MethodNotAllowed, UnsupportedMediaType
from tests.support.operations import operations

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"


def _documented() -> set[tuple[int, str]]:
    rows = re.findall(r"^\| (\d{3}) \| `([A-Z_]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    return {(int(status), code) for status, code in rows}


def test_every_code_is_documented_with_its_status_and_no_other():
    framework = {(MethodNotAllowed([]).status, "INVALID_PAYLOAD"), (UnsupportedMediaType().status, "INVALID_PAYLOAD")}
    assert _documented() == {(status, code) for code, status in CATALOG.items()} | framework


def _subclasses(kind: type[ApiError]) -> set[type[ApiError]]:
    return {kind}.union(*(_subclasses(child) for child in kind.__subclasses__()))


def test_every_error_has_a_code_of_the_catalog_and_says_what_to_do():
    assert operations()  # imports every function
    for kind in _subclasses(ApiError):
        assert kind.code in CATALOG, kind
        assert kind.message.endswith("."), kind
