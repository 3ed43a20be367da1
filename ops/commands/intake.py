"""`assent-ops intake`: sends external findings to the intake manually."""
# ruff: noqa: PLC0415 (see ops.command.command)

from typing import Annotated, Any

import typer

from ops.arguments import Organization
from ops.command import command
from ops.errors import Refused
from ops.output import Result

app = typer.Typer(no_args_is_help=True, help="Send runtime detections and advisories to the finding intake.")

_SENT = "Sent. The finding will appear in the inbox shortly."
_NOW = "The time, as in 2026-03-04T05:06:07Z. Default: now."


@command(app, "send")
def send_file(
    file: Annotated[
        typer.FileText, typer.Argument(help="A JSON file with a message or a list of messages; - for stdin.")
    ],
) -> Result:
    """Send the messages in a file. Sends nothing unless all of them are valid."""
    from ops import intake

    try:
        text = file.read()
    except UnicodeDecodeError:
        raise Refused("The file isn't valid UTF-8.") from None
    return Result(intake.send(intake.read_messages(text)), _SENT)


@command(app, "detection")
def send_detection(  # noqa: PLR0917 (Typer passes them by name)
    project: Annotated[str, typer.Argument(metavar="PROJECT_ID", help="prj_…")],
    vendor: Annotated[str, typer.Argument(metavar="VENDOR_ID", help="The vendor's unique id, for example segment.")],
    name: Annotated[str, typer.Option("--name", help="The vendor's name.")],
    domain: Annotated[str, typer.Option("--domain", help="The host that the page called.")],
    category: Annotated[str | None, typer.Option("--category", help="The vendor's purpose, if known.")] = None,
    before_consent: Annotated[
        bool, typer.Option("--before-consent", help="The vendor was loaded before the visitor consented.")
    ] = False,
    seen_on: Annotated[
        list[str] | None, typer.Option("--seen-on", metavar="URL", help="A page on which it was detected.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help=_NOW)] = None,
) -> Result:
    """Report a vendor that was detected at runtime on a project's website."""
    fields = {
        "projectId": project,
        "vendorId": vendor,
        "name": name,
        "domain": domain,
        "category": category,
        "beforeConsent": before_consent,
        "seenOn": seen_on,
        "observedAt": at or _now(),
    }
    return _send("runtime-vendor-detection", fields)


@command(app, "advisory")
def send_advisory(  # noqa: PLR0917 (Typer passes them by name)
    organization: Organization,
    advisory: Annotated[
        str, typer.Argument(metavar="ADVISORY_ID", help="The id, the same in every edition, for example ADV-2026-014.")
    ],
    title: Annotated[str, typer.Option("--title")],
    summary: Annotated[str | None, typer.Option("--summary")] = None,
    priority: Annotated[str | None, typer.Option("--priority", metavar="PRIORITY", help="P0 to P3.")] = None,
    description: Annotated[str | None, typer.Option("--description", help="Why it matters.")] = None,
    remediation: Annotated[str | None, typer.Option("--remediation", help="What to do.")] = None,
    reference: Annotated[
        list[str] | None, typer.Option("--reference", metavar="URL", help="A page with more information.")
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT_ID", help="The only project it concerns.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help=_NOW)] = None,
) -> Result:
    """Publish an advisory, or a new edition of one, to an organization."""
    from ops.lookup import get_organization_id

    fields = {
        "organizationId": get_organization_id(organization),
        "projectId": project,
        "advisoryId": advisory,
        "title": title,
        "summary": summary,
        "priority": priority,
        "description": description,
        "remediation": remediation,
        "references": reference,
        "publishedAt": at or _now(),
    }
    return _send("advisory", fields)


def _now() -> str:
    from controlplane.core import clock

    return clock.timestamp()


def _send(kind: str, fields: dict[str, Any]) -> Result:
    from ops import intake

    (sent,) = intake.send([intake.read_message(kind=kind, **fields)])
    return Result(sent, _SENT)
