"""`python -m benchmarks.analysis`: what the code analysis costs, next to plain ast-grep with the same rules.

The tree is the published source of an open source web application: packages of WordPress's editor, in pinned versions,
from npm. Where npm cannot be reached, a tree of the same size is generated. Both sides read the same files, each in a
process of its own that counts whole: start, rules, files, answer. Ours includes the sandboxed child.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.bench import Bench
from benchmarks.goals import Figure
from benchmarks.machine import ROOT
from benchmarks.report import table
from scan_execution.analysis.catalogue import catalogue
from scan_execution.analysis.files import language_of, reason_to_skip, walk
from scan_execution.analysis.rules import Rule, rules

PACKAGES = (
    "@wordpress/block-editor@18.0.0",
    "@wordpress/block-library@11.1.0",
    "@wordpress/components@41.0.0",
    "@wordpress/editor@15.0.0",
    "@wordpress/edit-site@7.5.0",
)
GROWTH = (200, 2_000, 20_000)
ROUNDS = 5
_LANGUAGES = {"html": "html", "javascript": "js", "typescript": "ts", "tsx": "tsx", "python": "python"}
_FETCH_SECONDS = 300
_COMPONENT = """
export function %(name)s({ title, items }) {
  const [open, setOpen] = useState(false);
  return <section onClick={() => setOpen(!open)}>{items.map((item) => <p key={item}>{title}</p>)}</section>;
}
"""


class Run(NamedTuple):
    seconds: float
    peak_megabytes: float
    # What it wrote; of plain ast-grep one line per match.
    output: Path


def fetch(folder: Path) -> str:
    """Unpacks the packages' sources into a folder; answers where they are from."""
    archives = folder.parent / "archives"
    archives.mkdir()
    command = ["npm", "pack", "--silent", "--pack-destination", str(archives), *PACKAGES]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError):
        generate(folder)
        return "generated: npm did not deliver the sources"
    unpacked = folder.parent / "unpacked"
    for archive in sorted(archives.iterdir()):
        shutil.unpack_archive(archive, unpacked / archive.stem, filter="data")
    for number, source in enumerate(_sources(unpacked)):
        target = folder / f"{number // 500}" / source.relative_to(unpacked)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return " ".join(PACKAGES)


def _sources(root: Path) -> Iterator[Path]:
    """The files that the analysis would look at, so that both sides have the same."""
    for path, entry, _ in walk(root):
        name = path.rpartition("/")[2]
        if entry is not None and language_of(name) in _LANGUAGES and not reason_to_skip(path):
            yield root / path


def generate(folder: Path, count: int = 2_400) -> None:
    """Components, most of them plain, and every twentieth with a tag, a cookie or an event in it."""
    for number in range(count):
        lines = [f"import {{ useState }} from 'react';\nimport {{ part{number} }} from './part-{number}';\n"]
        lines += [_COMPONENT % {"name": f"Component{number}_{n}"} for n in range(20)]
        if number % 20 == 0:
            lines.append("gtag('event', 'sign_up', { method: 'form', email: user.email });\n")
        path = folder / str(number // 100) / f"component-{number}.jsx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines))


def grow(tree: Path, folder: Path, count: int) -> None:
    """A tree of `count` files: those of `tree`, evenly taken or repeated."""
    sources = list(_sources(tree))
    for number in range(count):
        source = sources[number * len(sources) // count if count < len(sources) else number % len(sources)]
        target = folder / f"{number // 200}" / f"{number}-{source.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def write_plain_rules(folder: Path) -> Path:
    """Our rules as rule files of ast-grep, with as much of their conditions as it can express.

    That is the patterns of texts and the vendors' hosts. Gates, entropy and versions it does not know.
    """
    (folder / "rules").mkdir(parents=True)
    for rule in rules():
        for language, config in rule.match.items():
            name = f"{rule.id}-{language}"
            written = {"id": name, "language": _LANGUAGES[language], "message": rule.title, "severity": "warning"}
            text = yaml.safe_dump({**written, **_with_conditions(rule, config)}, sort_keys=False)
            (folder / "rules" / f"{name}.yml").write_text(text)
    config_file = folder / "sgconfig.yml"
    config_file.write_text("ruleDirs: [rules]\n")
    return config_file


def _with_conditions(rule: Rule, config: Mapping[str, Any]) -> dict[str, Any]:
    every, constraints = [config["rule"]], {}
    for key in ("text", "secret", "vendor"):
        condition = rule.where.get(key) or {}
        pattern = _hosts(condition["categories"]) if key == "vendor" and condition else condition.get("matches")
        if pattern is None or re.search(r"\(\?<?[=!]", pattern):  # it has no look-around
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
    """Peak memory, of the process and its child together, is read while it runs.

    What wait() tells also counts the process that started it.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "functions")}
    peaks: dict[int, float] = {}
    begun = time.monotonic()
    with output.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, env=environment)
        while process.poll() is None:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for number in (process.pid, *map(int, children)):
                    if found := re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{number}/status").read_text()):
                        peaks[number] = int(found[1]) / 1024
            time.sleep(0.005)
    return Run(time.monotonic() - begun, sum(peaks.values()), output)


def ours(tree: Path) -> Run:
    command = [sys.executable, "-m", "scan_execution.analysis", str(tree), "--json", "--seconds", "600"]
    return run(command, tree.parent / "ours.json")


def plain(config: Path, tree: Path) -> Run:
    """One thread, as the sandboxed child has."""
    tool = str(Path(sys.executable).with_name("ast-grep"))
    command = [tool, "scan", "-c", str(config), "--threads", "1", "--no-ignore", "vcs", "--json=stream", str(tree)]
    return run(command, tree.parent / "plain.jsonl")


def _interleave(sides: dict[str, Callable[[], Run]]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            found[name].append(side())
    return found


def measure(_: Bench | None = None) -> tuple[list[Figure], str]:
    with tempfile.TemporaryDirectory(prefix="analysis-") as name:
        folder = Path(name)
        tree = folder / "tree"
        tree.mkdir()
        origin = fetch(tree)
        config = write_plain_rules(folder / "plain")
        runs = _interleave({"analysis": lambda: ours(tree), "plain ast-grep": lambda: plain(config, tree)})
        account: dict[str, Any] = json.loads(runs["analysis"][0].output.read_bytes())
        files, lines = account["filesAnalyzed"], account["lines"]
        answers = {
            "analysis": len(account["findings"]),
            "plain ast-grep": runs["plain ast-grep"][0].output.read_bytes().count(b"\n"),
        }
        rows = []
        for side, measured in runs.items():
            seconds = statistics.median(run.seconds for run in measured)
            peak = max(run.peak_megabytes for run in measured)
            rows.append((side, round(files / seconds), round(lines / seconds), peak, seconds, answers[side]))
        text = f"the code analysis: {files:,} files, {lines:,} lines\n{origin}\n\n"
        text += table(rows, ("one thread that parses", "files/s", "lines/s", "peak MB", "s", "answers"))
        factor = statistics.median(
            theirs.seconds / mine.seconds for mine, theirs in zip(runs["analysis"], runs["plain ast-grep"], strict=True)
        )
        text += f"\nplain ast-grep takes {factor:.2f} x the time\n\n{_growth(tree, folder)}"
    return [], text


def _growth(tree: Path, folder: Path) -> str:
    rows = []
    for count in GROWTH:
        grown = folder / f"grown-{count}"
        grow(tree, grown, count)
        measured = [ours(grown) for _ in range(3)]
        seconds = statistics.median(run.seconds for run in measured)
        rows.append((f"{count:,} files", seconds, 1000 * seconds / count, max(run.peak_megabytes for run in measured)))
        shutil.rmtree(grown)
    return table(rows, ("growth", "s", "ms per file", "peak MB"))


if __name__ == "__main__":
    print(measure()[1])
