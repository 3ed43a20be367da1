"""`assent inbox`: findings, and decisions about them."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from openassent_cli.commands.shared import DEFAULT_LIMIT, DryRun, Duration, Group, Limit
from openassent_cli.finding import member_of, project_id, repository_id
from openassent_cli.invocation import invocation
from openassent_cli.output import ago, done, print_code, print_json, print_text, show_list
from openassent_cli.printable import printable, printable_line

if TYPE_CHECKING:
    from openassent.models import Evidence, Person

app = Group()
Items = Annotated[list[str], typer.Argument(metavar="ITEM...", help="The findings' IDs.")]
Item = Annotated[str, typer.Argument(metavar="ITEM", help="The finding's ID.")]
Reason = Annotated[str | None, typer.Option("--reason", "-m", help="Why, for your team.")]


@app.add("list", "assent inbox list --priority P0", "assent inbox list --project shop --since 7d")
def list_items(
    *,
    status: Annotated[str, typer.Option(help="open, accepted, dismissed, resolved, or all.")] = "open",
    priority: Annotated[str | None, typer.Option(help="P0, P1, P2, or P3.")] = None,
    source: Annotated[str | None, typer.Option(help="advisory, code-audit, or runtime.")] = None,
    project: Annotated[str | None, typer.Option(help="A project's ID, slug, or name.")] = None,
    repo: Annotated[str | None, typer.Option(help="A repository's ID, or owner/name.")] = None,
    vendor: Annotated[str | None, typer.Option(help="A vendor's ID.")] = None,
    assignee: Annotated[str | None, typer.Option(help="An email address, me, or none.")] = None,
    since: Annotated[
        Duration | None, typer.Option(help="Only what changed in the last while, such as 7d.", parser=Duration)
    ] = None,
    search: Annotated[str | None, typer.Option(help="Words that findings contain.")] = None,
    sort: Annotated[str, typer.Option(help="priority, or updated for the last change first.")] = "priority",
    limit: Limit = DEFAULT_LIMIT,
) -> None:
    """List findings, the most urgent first."""
    with invocation().client() as client:
        items = client.inbox.list(
            status=None if status == "all" else status,
            priority=priority,
            source=source,
            project_id=project_id(client, project) if project else None,
            repository_id=repository_id(client, repo) if repo else None,
            vendor_id=vendor,
            assignee=member_of(client, assignee).user.id if assignee and "@" in assignee else assignee,
            since=since.ago() if since else None,
            q=search,
            sort=sort,
        )
        show_list(
            items,
            {
                "": "priority",
                "FINDING": "title",
                "STATUS": "status",
                "REPOSITORY": "repository_name",
                "ASSIGNEE": lambda it: (it.assignee.name or it.assignee.id) if it.assignee else None,
                "ISSUE": lambda it: f"#{it.github_issue.number}" if it.github_issue else None,
                "CHANGED": "updated_at",
                "ID": "id",
            },
            limit=limit,
            empty="No findings. Well done.",
        )


@app.add("show")
def show_item(item: Item) -> None:
    """Show a finding with its evidence and fix."""
    with invocation().client() as client:
        found = client.inbox.get(item)
    if invocation().json:
        print_json(found)
        return
    print_text(Text(f"{found.priority or ''}  {printable_line(found.title)}".strip(), style="bold"))
    print_text(Text(f"{found.id}  {found.status}  {printable(found.repository_name or '')}", style="dim"))
    for text in dict.fromkeys((found.summary, found.description)):  # they can be the same
        if text:
            print_text(Text(printable(text)), above=1)
    for evidence in found.evidence:
        _print_evidence(evidence)
    if found.fix:
        print_text(Text(f"Fix: {printable(found.fix.summary)}", style="bold green"), above=1)
        print_code(found.fix.code, found.fix.language)
    elif found.remediation:
        print_text(Text(f"Fix: {printable(found.remediation)}"), above=1)
    if found.github_issue:
        print_text(Text(f"Issue: {printable(found.github_issue.url)}"), above=1)
    if found.assignee:
        print_text(Text(f"Assignee: {_name(found.assignee)}"), above=1)
    for comment in found.comments:
        print_text(Text(f"{_name(comment.author)}, {ago(comment.created_at)}", style="bold"), above=1)
        print_text(Text(printable(comment.text)))


@app.add("accept")
def accept(items: Items, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Accept findings: they are real, and will be fixed."""
    _decide(items, "accepted", reason, dry_run=dry_run)


@app.add("dismiss", "assent inbox dismiss inb_3f8k2m9q7r1s5t6v01 --reason 'Test page' --until 90d")
def dismiss(
    items: Items,
    reason: Reason = None,
    until: Annotated[
        Duration | None, typer.Option(help="Open them again after this time, such as 90d.", parser=Duration)
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Dismiss findings: they aren't worth a fix."""
    _decide(items, "dismissed", reason, until=until, dry_run=dry_run)


@app.add("snooze")
def snooze(
    items: Items,
    time: Annotated[Duration, typer.Option("--for", help="How long, such as 7d.", parser=Duration)],
    reason: Reason = None,
    dry_run: DryRun = False,
) -> None:
    """Dismiss findings for a while: they open again by themselves."""
    _decide(items, "dismissed", reason, until=time, dry_run=dry_run)


@app.add("assign")
def assign(
    item: Item,
    person: Annotated[str | None, typer.Argument(metavar="EMAIL", help="A member's email address, or me.")] = None,
    *,
    none: Annotated[bool, typer.Option("--none", help="Remove the assignee.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Assign a finding to a member, who gets an email."""
    if none == bool(person):
        raise typer.BadParameter("Name a member, or use --none.")
    with invocation().client() as client:
        user_id = member_of(client, person).user.id if person and person != "me" else person
        version = client.inbox.get(item).version
        changed = client.inbox.update(item, version=version, assignee_id=user_id, dry_run=dry_run)
    name = f"assigned to {_name(changed.assignee)}" if changed.assignee else "unassigned"
    done(changed, f"{item} {'would be' if dry_run else 'is'} {name}.")


@app.add("comment")
def comment(
    item: Item,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Plain text. @ and an email address mention a member.")],
    dry_run: DryRun = False,
) -> None:
    """Comment on a finding. Members whom it mentions get an email."""
    with invocation().client() as client:
        changed = client.inbox.create_comment(item, text=text, dry_run=dry_run)
    done(changed, f"The comment {'would be' if dry_run else 'is'} added.")


@app.add("resolve")
def resolve(items: Items, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Resolve findings: they are fixed."""
    _decide(items, "resolved", reason, dry_run=dry_run)


@app.add("reopen")
def reopen(items: Items, reason: Reason = None, dry_run: DryRun = False) -> None:
    """Reopen findings."""
    _decide(items, "open", reason, dry_run=dry_run)


@app.add("issue")
def issue(
    item: Item,
    existing: Annotated[str | None, typer.Option(help="Link this issue, by number or URL, instead.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Open a GitHub issue for a finding, or link an existing one."""
    with invocation().client() as client:
        changed = client.inbox.create_github_issue(item, existing_issue=existing, dry_run=dry_run)
        opened = changed.github_issue
        if dry_run:
            message = f"Would link the issue {existing}." if existing else "Would open an issue."
        else:
            message = f"Issue: {opened.url}" if opened else "The issue is being opened."
        done(changed, message)


def _decide(items: list[str], status: str, reason: str | None, *, until: Duration | None = None, dry_run: bool) -> None:
    """Changes the findings one after another. A finding that someone changed in the meantime stops the command."""
    with invocation().client() as client:
        changed = []
        for name in items:
            version = client.inbox.get(name).version
            end = until.from_now() if until else None
            changed.append(
                client.inbox.update(name, status=status, version=version, reason=reason, until=end, dry_run=dry_run)
            )
            if not invocation().json:
                done(changed[-1], f"{name} {'would be' if dry_run else 'is'} {status}.")
    if invocation().json:
        print_json(changed)


def _name(person: "Person") -> str:
    return printable_line(person.name or person.id)


def _print_evidence(evidence: "Evidence") -> None:
    print_text(Text(printable(evidence.description), style="bold"), above=1)
    location = evidence.location
    if location:
        line = f":{location.start_line}" if location.start_line else ""
        print_text(Text(f"{printable_line(location.path)}{line}", style="cyan"))
        language, start = location.path.rpartition(".")[2], location.start_line or 0
        if location.lines:
            own = range(start, (location.end_line or start) + 1)
            print_code("\n".join(it.text for it in location.lines), language, location.lines[0].number, marked=own)
    if evidence.url:
        print_text(Text(printable(evidence.url), style="dim"))
