"""`python -m benchmarks.analysis`: compares the time of the code analysis with plain ast-grep and our rules.

It shows what the sandbox costs (decision 28), and whether parsing only files that contain a rule's words pays off
(decision 15). The files are packages of WordPress's editor, in pinned versions, from npm. Both sides read the same
files, each as a whole process: start, rules, files, and result. Ours includes the sandboxed children, and runs all
rules.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml

from benchmarks.machine import ROOT
from benchmarks.report import interleave, ratio, table
from openassent_analysis.catalogue import catalogue
from openassent_analysis.files import language_of, reason_to_skip, walk, with_conventions
from openassent_analysis.rules import Rule, rules
from openassent_analysis.sandbox.pool import MAX_CHILDREN

PACKAGES = (
    "@wordpress/block-editor@18.0.0",
    "@wordpress/block-library@11.1.0",
    "@wordpress/components@41.0.0",
    "@wordpress/editor@15.0.0",
    "@wordpress/edit-site@7.5.0",
)
ROUNDS = 5
_LANGUAGES = {"html": "html", "javascript": "js", "typescript": "ts", "tsx": "tsx", "python": "python"}
_FETCH_SECONDS = 300
# Conditions that select few of many candidates, for example a name's package, and that ast-grep can't express.
_SELECTIVE = frozenset({"package", "path", "plugin", "unknown_script", "outdated_library"})
# Rules about addresses, calls, and elements, such as a project would write for itself.
_FEW = ("analytics-loaded", "analytics-sdk-started", "tag-manager-loaded")
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")  # which its patterns don't have
# Prints the numbers of analyzed files, of their lines, and of findings.
_OURS = """
import json, pathlib, sys
from openassent_analysis import Limits, analyze_folder
from openassent_analysis.sandbox import Sandbox

limits = Limits(max_seconds=600)
with Sandbox(limits) as sandbox:
    done = analyze_folder(pathlib.Path(sys.argv[1]), sandbox.examine, limits)
print(json.dumps([done.files_analyzed, done.lines, len(done.findings)]))
"""


class Run(NamedTuple):
    seconds: float
    # Of the process and its children.
    cpu_seconds: float
    # The output; plain ast-grep writes one line per match.
    output: Path


def fetch(folder: Path) -> None:
    """Unpacks the packages' sources into the folder. Needs npm and its registry."""
    archives = folder.parent / "archives"
    archives.mkdir()
    command = ["npm", "pack", "--silent", "--pack-destination", str(archives), *PACKAGES]
    subprocess.run(command, check=True, capture_output=True, timeout=_FETCH_SECONDS)
    unpacked = folder.parent / "unpacked"
    for archive in sorted(archives.iterdir()):
        shutil.unpack_archive(archive, unpacked / archive.stem, filter="data")
    for number, source in enumerate(_sources(unpacked)):
        target = folder / f"{number // 500}" / source.relative_to(unpacked)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _sources(root: Path) -> Iterator[Path]:
    """Returns the files that the analysis would read, so that both sides read the same ones."""
    for path, entry, reason in with_conventions(walk(root)):
        name = path.rpartition("/")[2]
        if entry is not None and reason is None and language_of(name) in _LANGUAGES and not reason_to_skip(path):
            yield root / path


def write_plain_rules(folder: Path, few: Sequence[str] = ()) -> Path:
    """Writes our rules as ast-grep rule files, with those of their conditions that it can express.

    It supports text patterns and the vendors' hosts, but not gates or versions. Leaves out rules with a selective
    condition that it can't express, because they would match nearly everything. few: writes only these.
    """
    (folder / "rules").mkdir(parents=True)
    for rule in (it for it in rules() if (it.id in few if few else _is_expressible(it))):
        for language, config in rule.match.items():
            name = f"{rule.id}-{language}"
            written = {"id": name, "language": _LANGUAGES[language], "message": rule.title, "severity": "warning"}
            text = yaml.safe_dump({**written, **_with_conditions(rule, config)}, sort_keys=False)
            (folder / "rules" / f"{name}.yml").write_text(text)
    config_file = folder / "sgconfig.yml"
    config_file.write_text("ruleDirs: [rules]\n")
    return config_file


def _is_expressible(rule: Rule) -> bool:
    text = rule.where.get("text") or {}
    return _SELECTIVE.isdisjoint(rule.where) and not _LOOK_AROUND.search(text.get("matches", ""))


def _with_conditions(rule: Rule, config: Mapping[str, Any]) -> dict[str, Any]:
    every, constraints = [config["rule"]], {}
    for key in ("text", "vendor"):
        condition = rule.where.get(key) or {}
        pattern = _hosts(condition["categories"]) if key == "vendor" and condition else condition.get("matches")
        if pattern is None:
            continue
        if capture := condition.get("in"):
            constraints[capture] = {"regex": pattern}
        else:
            every.append({"regex": pattern})
    return {**config, "rule": {"all": every}, **({"constraints": constraints} if constraints else {})}


def _hosts(categories: Iterable[str]) -> str:
    hosts = [
        re.escape(pattern).replace("/", "\\/")
        for vendor in catalogue().vendors.values()
        if vendor.category in categories
        for pattern in vendor.domains
    ]
    return rf"//(?:[\w-]+\.)*(?:{'|'.join(hosts)})".replace("\\-", "-").replace("\\/", "/")


def run(command: list[str], output: Path) -> Run:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "layers" / "analysis")}
    # The size of a function's memory in other benchmarks, which would decide on the number of cores.
    environment.pop("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", None)
    begun = time.monotonic()
    with output.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, output)


def ours(tree: Path) -> Run:
    return run([sys.executable, "-c", _OURS, str(tree)], tree.parent / "ours.json")


def plain(config: Path, tree: Path) -> Run:
    """Uses as many threads as there are sandboxed children."""
    tool = str(Path(sys.executable).with_name("ast-grep"))
    options = ["--threads", str(min(MAX_CHILDREN, os.process_cpu_count() or 1)), "--no-ignore", "vcs", "--json=stream"]
    command = [tool, "scan", "-c", str(config), *options, str(tree)]
    return run(command, tree.parent / "plain.jsonl")


def measure() -> str:
    """Returns the report."""
    with tempfile.TemporaryDirectory(prefix="analysis-") as name:
        folder = Path(name)
        tree = folder / "tree"
        tree.mkdir()
        fetch(tree)
        config, three = write_plain_rules(folder / "plain"), write_plain_rules(folder / "three", _FEW)
        empty = folder / "empty"
        empty.mkdir()
        sides = {
            "analysis": lambda: ours(tree),
            "plain ast-grep": lambda: plain(config, tree),
            "ast-grep, 3 rules": lambda: plain(three, tree),
            "analysis, no file": lambda: run([sys.executable, "-c", _OURS, str(empty)], folder / "empty.json"),
        }
        runs: dict[str, list[Run]] = {side: [] for side in sides}

        def measured(side: str) -> float:
            runs[side].append(sides[side]())
            return runs[side][-1].seconds

        elapsed = interleave(sides, measured, ROUNDS, warm_up=0)
        cpu = {side: [run.cpu_seconds for run in runs[side]] for side in sides}
        files, lines, findings = json.loads(runs["analysis"][0].output.read_bytes())
        matches = runs["plain ast-grep"][0].output.read_bytes().count(b"\n")
        answers = {"analysis": findings, "plain ast-grep": matches}
        rows = [(side, median(elapsed[side]), median(cpu[side]), answers.get(side, "")) for side in sides]
        text = f"the code analysis: {files:,} files, {lines:,} lines\n\n"
        text += table(rows, ("one thread that parses per core", "s", "CPU s", "answers"))
        analysis, every, few, _ = sides
        took, used = (ratio(it[analysis], it[every]) for it in (elapsed, cpu))
        text += f"\nanalysis: {took:.2f} x the time and {used:.2f} x the CPU time of plain ast-grep"
        return text + f", {ratio(cpu[analysis], cpu[few]):.2f} x the CPU time of 3 rules"


if __name__ == "__main__":
    print(measure())
