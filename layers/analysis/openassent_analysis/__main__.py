"""`python -m openassent_analysis PATH`: prints a folder's findings, most urgent first."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from openassent_analysis import Analysis, Limits, analyze_folder
from openassent_analysis.sandbox import Sandbox


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m openassent_analysis", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--json", action="store_true", help="findings and account as one JSON document")
    parser.add_argument("--seconds", type=float, default=600, help="time after which no more files are read")
    options = parser.parse_args()
    if not options.path.is_dir():
        parser.error(f"{options.path} is no folder")
    limits = Limits(max_seconds=options.seconds)
    with Sandbox(limits) as sandbox:
        analysis = analyze_folder(options.path, sandbox.examine, limits)
    sys.stdout.write(_as_json(analysis) if options.json else _as_text(analysis))
    return 0


def _as_json(analysis: Analysis) -> str:
    account = {
        "findings": [finding.as_dict() for finding in analysis.findings],
        "filesSeen": analysis.files_seen,
        "filesAnalyzed": analysis.files_analyzed,
        "lines": analysis.lines,
        "bytesRead": analysis.bytes_read,
        "skipped": dict(analysis.skipped),
        "kinds": {
            name: {"analyzed": kind.analyzed, "notAssessed": kind.not_assessed}
            for name, kind in sorted(analysis.kinds.items())
        },
        "truncated": analysis.truncated,
        "incomplete": analysis.incomplete,
    }
    return json.dumps(account, indent=1, ensure_ascii=False) + "\n"


def _as_text(analysis: Analysis) -> str:
    parts = []
    for finding in analysis.findings:
        place = finding.location
        parts.append(
            f"{finding.priority} {finding.severity:8} {finding.title}\n"
            f"   {place.path}:{place.start_line}:{place.start_column}  {finding.category}/{finding.rule_id}"
            f"  {finding.fingerprint[:12]}\n" + "".join(f"   | {line}\n" for line in place.snippet.split("\n")[:3])
        )
    skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(analysis.skipped.items()))
    parts.append(
        f"{len(analysis.findings)} findings in {analysis.files_analyzed:,} files ({analysis.lines:,} lines)"
        f"{'; skipped: ' + skipped if skipped else ''}\n"
    )
    unread = [(name, kind.not_assessed) for name, kind in sorted(analysis.kinds.items()) if kind.not_assessed]
    if unread:
        parts.append(f"Not assessed: {', '.join(f'{files:,} {name}' for name, files in unread)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
