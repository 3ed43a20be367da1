"""Expands the loops of a template (`Fn::ForEach`) with cfn-lint, as CloudFormation does before it reads the template.

local/template.py runs it in SAM's environment: it reads a template as JSON, and writes it without loops.
"""

import copy
import json
import sys
from typing import Any

TRANSFORM = "AWS::LanguageExtensions"


def expanded(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template without loops. Conditions, references, and other transforms stay. Raises ValueError."""
    from cfnlint.template import Template  # noqa: PLC0415 (only in SAM's environment)

    # It changes what it is given.
    reader = Template(None, {**copy.deepcopy(template), "Transform": TRANSFORM}, ["us-east-1"])
    if problems := reader.transform():
        raise ValueError(problems[0].message)
    return {**template, **{name: reader.template[name] for name in ("Resources", "Outputs") if name in template}}


if __name__ == "__main__":
    json.dump(expanded(json.load(sys.stdin)), sys.stdout)
