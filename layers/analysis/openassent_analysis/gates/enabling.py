"""Options of a vendor's call that turn the vendor on, and whose value is the visitor's choice."""

from __future__ import annotations

import re
from typing import Final

from ast_grep_py import SgNode

from openassent_analysis.blocks import Block
from openassent_analysis.gates.context import Reader
from openassent_analysis.gates.markup import meaning_of_script
from openassent_analysis.reading import resource

_OPTIONS: Final = resource("queries")["enabling_options"]
_MAX_OPTIONS: Final = 10
# <GoogleAnalytics enabled={allowed} /> of Svelte, <google-analytics :enabled="allowed" /> of Vue
_ENABLED: Final = re.compile(r"""\s:?enabled=(?:\{|["'])([^{}"'<>]{1,200})""")
_LONGEST_TAG: Final = 2_000


def enabled_with_consent(reader: Reader, block: Block, call: SgNode) -> bool:
    """Returns whether an option of a call, or of a component, is true only if the visitor has consented."""
    if block.host is not None and (written := _ENABLED.search(block.host.text()[:_LONGEST_TAG])):
        return meaning_of_script(reader, written[1]).true.given
    if call.kind() not in {"call_expression", "new_expression"}:
        return False
    for pair in call.find_all(_OPTIONS)[:_MAX_OPTIONS]:
        value = pair.field("value")
        if value is not None and value.kind() not in {"true", "false"} and reader.meaning(block, value).true.given:
            return True
    return False
