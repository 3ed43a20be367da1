"""The pages of the rules, made from the rules of the analysis and from rules.yaml."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from openassent_analysis.findings import CATEGORIES
from openassent_analysis.reading import load_yaml
from openassent_analysis.rules import Rule, rules

TEXTS = Path(__file__).with_name("rules.yaml")
# How a comment begins and ends, by the name of the file.
_COMMENTS = {".html": ("<!-- ", " -->"), ".py": ("# ", ""), ".jsx": ("{/* ", " */}"), ".tsx": ("{/* ", " */}")}
_COMMENT_OF_CODE = ("// ", "")
# Files of data have no comments.
_WITHOUT_COMMENTS = ".json"


class Example(NamedTuple):
    """Code that is reported, and similar code that isn't."""

    path: str
    wrong: str
    right: str

    def silenced_by(self, rule_id: str) -> str:
        """Returns the comment that suppresses the finding, or an empty string if the file can't have one."""
        suffix = Path(self.path).suffix
        if suffix == _WITHOUT_COMMENTS:
            return ""
        start, end = _COMMENTS.get(suffix, _COMMENT_OF_CODE)
        return f"{start}assent-ignore: {rule_id} -- why this is fine here{end}"


def rule_pages(environment: Environment) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each page: rules.html, which lists the rules, and rule.ID.html."""
    known = texts()
    by_category = defaultdict(list)
    for rule in sorted(rules(), key=lambda rule: rule.id):
        by_category[rule.category].append(rule)
    categories = {known["categories"][name]["title"]: by_category[name] for name in CATEGORIES if by_category[name]}
    yield "rules.html", environment.get_template("rules.html").render(categories=categories, root="../")
    page = environment.get_template("rule.html")
    for rule in rules():
        yield (
            f"rule.{rule.id}.html",
            page.render(
                rule=rule,
                texts=rule.texts(),
                why=known["categories"][rule.category]["why"],
                wrong_when=known["rules"][rule.id]["wrong_when"],
                example=(example := example_of(rule)),
                comment=example.silenced_by(rule.id),
                root="../../",
            ),
        )


def example_of(rule: Rule) -> Example:
    """Returns the rule's example in rules.yaml, or else the two samples that are most alike."""
    if written := texts()["rules"][rule.id].get("example"):
        return Example(**written)
    wrong, right = max(product(_files(rule, "match"), _files(rule, "clean")), key=_likeness)
    return Example(wrong["path"], wrong["code"], right["code"])


def _files(rule: Rule, kind: str) -> list[Mapping[str, str]]:
    return [sample for sample in rule.samples[kind] if isinstance(sample, Mapping)]


def _likeness(pair: tuple[Mapping[str, str], Mapping[str, str]]) -> tuple[bool, float]:
    wrong, right = pair
    same_kind = Path(wrong["path"]).suffix == Path(right["path"]).suffix
    return same_kind, SequenceMatcher(None, wrong["code"], right["code"]).ratio()


@cache
def texts() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_yaml(TEXTS)
    return found
