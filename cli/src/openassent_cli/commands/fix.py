"""`assent fix`: the edits that fix the findings in a folder, as a diff or in place."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openassent_cli.commands.shared import Excluded, Group, Included, OnlyRules
from openassent_cli.invocation import console, in_terminal, invocation, note
from openassent_cli.output import counted, print_json
from openassent_cli.printable import printable, printable_line
from openassent_cli.problems import Exit
from openassent_cli.progress import FileProgress

if TYPE_CHECKING:
    from openassent_analysis.working_tree import ReportedFinding
    from openassent_cli.edits import EditedFolder

app = Group()
_STYLES = {"+": "green", "-": "red", "@": "cyan", " ": "", "\\": "dim"}


@app.add("fix", "assent fix", "assent fix web --apply")
def fix(
    path: Annotated[Path, typer.Argument(help="The folder to fix.")] = Path(),
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Write the changes to the files.")] = False,
    exclude: Excluded = None,
    include: Included = None,
    rule: OnlyRules = None,
) -> None:
    """Show the changes that fix findings in a folder as a diff, or make them: offline, without an account."""
    # Imported here, because the analysis takes a third of a second to import.
    from openassent_cli.edits import Changed, EditedFolder  # noqa: PLC0415
    from openassent_cli.local import scan_folder, selection_of  # noqa: PLC0415

    with FileProgress() as progress:
        selection = selection_of(exclude, include, rule)
        report = scan_folder(path, selection=selection, on_progress=progress.update)
    folder = EditedFolder(report)
    folder.fix_all()
    diff = folder.diff()
    if apply:
        for file in folder.files:
            file.write()
    if invocation().json:
        print_json(
            {
                "applied": apply,
                "files": [file.path for file in folder.files],
                "diff": diff.encode(errors="replace").decode(),
                "fixed": [it.as_dict() for it in folder.fixed],
                "refused": [{"reason": str(reason), "finding": it.as_dict()} for it, reason in folder.refused],
                "byHand": [it.as_dict() for it in folder.by_hand],
            }
        )
    else:
        _show(folder, diff, applied=apply)
    if any(isinstance(reason, Changed) for _, reason in folder.refused):
        raise typer.Exit(Exit.CONFLICT)


def _show(folder: "EditedFolder", diff: str, *, applied: bool) -> None:
    """Prints the diff, or the names of the files that have changed, and what remains to be done."""
    files = counted(len(folder.files), "file")
    if applied:
        for file in folder.files:
            typer.echo(printable_line(file.path))
        note(f"Changed {files}.")
    else:
        _print_diff(diff)
        for file in folder.files:
            if not file.is_text_for_git:
                note(f"{file.path} is in UTF-16, of which git makes no diff. Change it with --apply.")
        if folder.files:
            note(f"Change {files} with --apply, or pipe the diff to `git apply`.")
    for reported in folder.fixed:
        note(f"{'Fixed' if applied else 'Would fix'}: {_line(reported)}. {_advice(reported)}")
    for reported, reason in folder.refused:
        note(f"Not fixed, because {reason}: {_line(reported)}.")
    for reported in folder.by_hand:
        note(f"By hand: {_line(reported)}. {reported.finding.remediation}")


def _print_diff(diff: str) -> None:
    if not in_terminal():
        # Files may contain bytes that aren't UTF-8.
        typer.get_binary_stream("stdout").write(diff.encode(errors="surrogateescape"))
        return
    from rich.text import Text  # noqa: PLC0415 (see `extras`)

    terminal = console()
    for line in diff.splitlines():
        terminal.print(Text(printable(line), style=_STYLES.get(line[:1], "bold")), soft_wrap=True)


def _advice(reported: "ReportedFinding") -> str:
    """Returns the description of the fix, with the packages that it needs."""
    if reported.fix is None:
        return reported.finding.remediation
    needs = f" It needs {', '.join(reported.fix.packages)}." if reported.fix.packages else ""
    return reported.fix.summary + needs


def _line(reported: "ReportedFinding") -> str:
    finding = reported.finding
    place = f"{finding.location.path}:{finding.location.start_line}"
    return f"{finding.priority} {place} {finding.title}"
