"""The MCP server: twelve tools on the same operations as the commands, over standard input and output.

A tool is offered only if the credential has the scopes that it needs, so a sign-in with few scopes makes a server with
few tools. Tools that spend credits or write where others see it are marked as destructive or as open to the world.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from openassent import Assent, AssentError, __version__
from openassent_cli.failures import problem_of
from openassent_cli.finding import project_id, repository_id
from openassent_cli.local import scan_folder
from openassent_cli.output import plain
from openassent_cli.problems import Problem

_INSTRUCTIONS = (
    "Assent finds tracking that runs without consent. Start with `projects` and `findings`. Read a finding with "
    "`finding` before you decide about it; its version is needed to change it. `scan_folder` works offline."
)
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_PUBLISHES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)
_SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

Project = Annotated[str, Field(description="ID, slug, or name")]
Repository = Annotated[str, Field(description="ID or owner/name")]
Limit = Annotated[int, Field(ge=1, le=100, description="Most items to return")]


class Tools:
    """The tools. Each returns what the API returns, or raises ToolError with what to do."""

    def __init__(self, client: Assent) -> None:
        self._client = client

    def whoami(self) -> dict[str, Any]:
        """Show the credential: organizations, roles, and scopes."""
        return _answer(self._client.me.get())

    def projects(self, project: Project | None = None, limit: Limit = 50) -> dict[str, Any]:
        """List projects, or show one with its websites and consent settings."""
        if project:
            return _answer(self._client.projects.get(project_id(self._client, project)))
        return _page(self._client.projects.list(limit=limit))

    def vendors(self, project: Project, limit: Limit = 50) -> dict[str, Any]:
        """List the vendors detected on a project, with the decision about each."""
        return _page(self._client.vendors.list(project_id(self._client, project), limit=limit))

    def decide_vendor(self, project: Project, vendor_id: str, decision: Literal["approve", "ignore"]) -> dict[str, Any]:
        """Approve or ignore a vendor of a project. This resolves its findings."""
        return _answer(self._client.vendors.decide(project_id(self._client, project), vendor_id, decision=decision))

    def findings(
        self,
        status: Literal["open", "accepted", "dismissed", "resolved"] = "open",
        priority: Literal["P0", "P1", "P2", "P3"] | None = None,
        project: Project | None = None,
        repository: Repository | None = None,
        limit: Limit = 30,
    ) -> dict[str, Any]:
        """List findings of the inbox, newest first, without evidence."""
        found = self._client.inbox.list(
            status=status,
            priority=priority,
            project_id=project_id(self._client, project) if project else None,
            repository_id=repository_id(self._client, repository) if repository else None,
            limit=limit,
        )
        return _page(found)

    def finding(self, item_id: str) -> dict[str, Any]:
        """Show a finding with its evidence, code, fix, and version."""
        return _answer(self._client.inbox.get(item_id))

    def decide_finding(
        self,
        item_id: str,
        version: Annotated[str, Field(description="From `finding`; refused if the finding has changed")],
        status: Literal["open", "accepted", "dismissed", "resolved"],
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Accept, dismiss, resolve, or reopen a finding."""
        return _answer(self._client.inbox.update(item_id, status=status, version=version, reason=reason))

    def open_issue(self, item_id: str) -> dict[str, Any]:
        """Open a GitHub issue for a finding. Everyone who can see the repository can see it."""
        return _answer(self._client.inbox.create_github_issue(item_id))

    def scans(
        self, scan_id: str | None = None, repository: Repository | None = None, limit: Limit = 20
    ) -> dict[str, Any]:
        """List scans, or show one with its progress, findings, and difference from the one before."""
        if scan_id is None:
            found = repository_id(self._client, repository) if repository else None
            return _page(self._client.scans.list(repository_id=found, limit=limit))
        scan = self._client.scans.get(scan_id)
        if scan.status != "completed" or scan.access == "locked":
            return {"scan": plain(scan)}
        issues, diff = self._client.scans.issues(scan_id), self._client.scans.diff(scan_id)
        return {"scan": plain(scan), "findings": plain(issues), "diff": plain(diff)}

    def start_scan(self, repository: Repository, project: Project | None = None) -> dict[str, Any]:
        """Scan the newest commit of a connected repository. Follow it with `scans`."""
        return _answer(
            self._client.scans.start(
                repository_id=repository_id(self._client, repository),
                project_id=project_id(self._client, project) if project else None,
            )
        )

    def unlock_scan(self, scan_id: str) -> dict[str, Any]:
        """Pay for all findings of a scan. Spends the `unlockCredits` that the scan shows: ask the user first."""
        return _answer(self._client.scans.unlock(scan_id))


def scan_files(folder: Annotated[str, Field(description="Absolute path")]) -> dict[str, Any]:
    """Scan a folder on this machine, offline, and return its findings."""
    return scan_folder(Path(folder)).as_json()


# Each tool with the scopes that it needs.
_OFFERED: dict[str, tuple[ToolAnnotations, frozenset[str]]] = {
    "whoami": (_READS, frozenset()),
    "projects": (_READS, frozenset({"projects.read"})),
    "vendors": (_READS, frozenset({"projects.read"})),
    "decide_vendor": (_CHANGES, frozenset({"vendors.write", "projects.read"})),
    "findings": (_READS, frozenset({"inbox.read"})),
    "finding": (_READS, frozenset({"inbox.read"})),
    "decide_finding": (_CHANGES, frozenset({"inbox.write"})),
    "open_issue": (_PUBLISHES, frozenset({"inbox.write"})),
    "scans": (_READS, frozenset({"code-audit.read"})),
    "start_scan": (_CHANGES, frozenset({"code-audit.write", "code-audit.read"})),
    "unlock_scan": (_SPENDS, frozenset({"code-audit.write"})),
}


def server(client: Assent | None, scopes: set[str], *, read_only: bool) -> MCPServer:
    """Returns the server with the tools that these scopes allow. client: None without a credential."""
    made = MCPServer("assent", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    made.tool(name="scan_folder", annotations=_READS, structured_output=False)(_told(scan_files))
    if client is None:
        return made
    tools = Tools(client)
    for name, (annotations, needed) in _OFFERED.items():
        if needed <= scopes and (annotations.read_only_hint or not read_only):
            made.tool(name=name, annotations=annotations, structured_output=False)(_told(getattr(tools, name)))
    return made


def _told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Returns the tool with errors that the model can act on."""

    @functools.wraps(tool)
    def run(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except AssentError as error:
            raise _refusal(problem_of(error)) from error
        except Problem as problem:
            raise _refusal(problem) from problem

    return run


def _refusal(problem: Problem) -> ToolError:
    return ToolError("\n".join(filter(None, (problem.message, problem.advice))))


def _answer(value: object) -> dict[str, Any]:
    answer = plain(value)
    return answer if isinstance(answer, dict) else {"result": answer}


def _page(found: Any) -> dict[str, Any]:
    page = found.page()
    return {"items": plain(list(page.items)), "more": page.next_cursor is not None}
