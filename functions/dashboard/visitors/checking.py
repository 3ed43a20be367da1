"""Checks code that anyone pastes, without storing or logging any of it.

The code is parsed as a scan parses it: by a child process that can only compute, and that ends with the check.
"""

from typing import Any, Final, NamedTuple

from controlplane.findings.fixes import Fix
from controlplane.platform.core.errors import ServiceUnavailable
from controlplane.platform.table import waiting
from dashboard.forms import NotAcceptable

MAX_BYTES: Final = 64 * 1024
# A page's findings. More would make a page too long to read.
_MOST_FINDINGS: Final = 20
# Together less than the function's timeout. The processor is a fraction of a scan's.
_START_SECONDS, _CHECK_SECONDS = 8, 6
# Paths of code that runs without being referred to.
_PAGE, _SCRIPT = "index.html", "index.tsx"


class CheckUnavailable(ServiceUnavailable):
    title = "This can't be checked now"
    message = "Your code was not checked: too many people are checking code now, or the check failed. Try again soon."


class Found(NamedTuple):
    """A finding in the code: an `openassent_analysis.Finding`, and its fix or None."""

    finding: Any
    fix: Fix | None


class Checked(NamedTuple):
    """The result. unread: why the code was not analyzed, or None. lines: how many were."""

    found: tuple[Found, ...]
    lines: int
    unread: str | None = None


def check_code(code: str) -> Checked:
    """Returns the findings in a page's HTML, or in JavaScript or TypeScript. Raises NotAcceptable, CheckUnavailable."""
    if not code.strip():
        raise NotAcceptable("Paste some HTML or JavaScript.")
    if len(code.encode()) > MAX_BYTES:
        raise NotAcceptable("This is more than 64 KB. Paste a part of it, or scan the whole repository.")
    with waiting.slot(_START_SECONDS + _CHECK_SECONDS, waiting.CHECKS) as is_free:
        if not is_free:
            raise CheckUnavailable(reason="no slot")
        return _analyze(_PAGE if code.lstrip().startswith("<") else _SCRIPT, code)


def _analyze(path: str, code: str) -> Checked:
    # Half a second that only this page needs.
    from openassent_analysis import Limits, analyze_files  # noqa: PLC0415
    from openassent_analysis.fixes import Project, fix_for  # noqa: PLC0415
    from openassent_analysis.inventory.stocktaking import Inventory, with_loads  # noqa: PLC0415
    from openassent_analysis.judgment import MISSING  # noqa: PLC0415
    from openassent_analysis.sandbox import Bounds, Sandbox, SandboxUnavailable  # noqa: PLC0415

    limits = Limits(max_seconds_per_file=_CHECK_SECONDS / 2, max_seconds=_START_SECONDS + _CHECK_SECONDS)
    bounds = Bounds(_CHECK_SECONDS, _CHECK_SECONDS, memory_bytes=512 * 1024**2, start_seconds=_START_SECONDS)
    try:
        with Sandbox(limits, bounds, workers=1) as sandbox:
            result = analyze_files([(path, code.encode())], sandbox.examine, limits)
    except SandboxUnavailable as failure:
        raise CheckUnavailable(reason="sandbox") from failure
    project = Project.of(with_loads(Inventory(files=1), result.loads), result)
    # A part of a project doesn't show that the whole lacks a consent manager.
    findings = [it for it in result.findings if it.rule_id != MISSING][:_MOST_FINDINGS]
    fixes = ((it, fix_for(it, project)) for it in findings)
    found = tuple(Found(it, None if fix is None else Fix.of(fix)) for it, fix in fixes)
    return Checked(found, result.lines, next(iter(result.skipped), None))
