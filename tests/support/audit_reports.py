"""Reports of audits, as the engine makes them, and as the worker sends them."""

import json
from typing import Any

from controlplane.audits import runs, store
from controlplane.audits.items import RunItem
from controlplane.projects.items import ProjectItem
from finding_intake.service import ACCEPTED, process_finding
from openassent_audit.messages import make_message

# The fields that the worker adds to a message.
OF_A_RUN = {
    "runId": "run_3v8k2m9q4w7x1c5z01jd9x7k2m8q4w7x1c",
    "auditId": "aud_01jd9x7k2m8q4w7x1c",
    "projectId": "prj_3v8k2m9q4w7x1c5z01jd9x7k2m8q4w7x1c",
    "claim": "0123456789abcdef" * 2,
    "proof": None,
}
PAGE = "https://shop.example.com/"
ALL = ["untouched", "refused", "accepted"]


def request(url: str, vendor_id: str | None = None, **fields: Any) -> dict[str, Any]:
    of_visit = {"kind": "script", "at": 1_200, "page": PAGE, "afterChoice": False, "chain": [PAGE], "consent": {}}
    return {"url": url, **of_visit, "vendorId": vendor_id, **fields}


def cookie(name: str, **fields: Any) -> dict[str, Any]:
    where = {"domain": ".shop.example.com", "path": "/", "setBy": "", "page": PAGE, "at": 900, "sameSite": "Lax"}
    flags = {"secure": True, "httpOnly": False, "afterChoice": False, "identifies": True}
    return {"name": name, "pattern": name, "lifetimeSeconds": 86_400, **where, **flags, **fields}


def visit(choice: str = "untouched", **fields: Any) -> dict[str, Any]:
    return {
        "choice": choice,
        "answeredBy": None,
        "halted": None,
        "pages": [PAGE],
        "consentMode": [],
        "tcf": None,
        "requestCount": 1,
        "requests": [request("https://cdn.segment.com/a.js", "segment")],
        "cookies": [cookie("_ga")],
        "storage": [{"origin": PAGE[:-1], "kind": "local", "key": "seen", "afterChoice": False}],
        "refused": {},
        **fields,
    }


def vendor(vendor_id: str = "segment", **fields: Any) -> dict[str, Any]:
    seen = {"needsConsent": True, "before": True, "refused": False, "accepted": True, "pages": [PAGE]}
    named = {"name": vendor_id.title(), "domain": f"cdn.{vendor_id}.com", "category": "analytics", "aliasOf": None}
    return {"vendorId": vendor_id, **named, **seen, **fields}


def finding(kind: str = "loaded-before-consent", subject: str = "segment", **fields: Any) -> dict[str, Any]:
    url = "https://cdn.segment.com/a.js"
    proof = {"description": "A script request to cdn.segment.com", "visit": "untouched", "page": PAGE, "at": 1_200}
    return {
        "id": f"{kind}:{subject}",
        "kind": kind,
        "title": "Segment loads before consent",
        "summary": "Segment (analytics) was requested.",
        "priority": "P1",
        "vendorId": "segment",
        "cookie": None,
        "evidence": [{**proof, "url": url, "chain": [f"{PAGE}app.js"]}],
        **fields,
    }


def message(
    *findings: dict[str, Any], made: list[str] | None = None, picture: bytes | None = None, **fields: Any
) -> dict[str, Any]:
    """Returns the engine's message about an audit with these findings. fields: of the engine's report."""
    report = {
        "outcome": "failed" if findings else "passed",
        "reason": None,
        "finishedAt": "2026-03-04T05:00:00+00:00",
        "banner": {"library": "Klaro", "isShown": True, "accepts": True, "refuses": True, "buttons": ["Yes", "No"]},
        "pages": [PAGE],
        "findings": list(findings),
        "vendors": [vendor()],
        "visits": [visit()],
        **fields,
    }
    return {**make_message(report, ALL if made is None else made, picture)}


def report(run: RunItem, *findings: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Returns the worker's message about a run. fields: of the message, or of the engine's report."""
    of_run = {"runId": run.run_id, "auditId": run.audit_id, "projectId": run.project_id, "claim": run.claim}
    sent = {name: fields.pop(name) for name in ("claim", "proof", "picture", "projectId") if name in fields}
    return {**message(*findings, **fields), **of_run, **sent}


def receive(sent: dict[str, Any]) -> None:
    """Processes a message, without its queue."""
    process_finding(ACCEPTED.validate_json(json.dumps(sent)))


def complete_audit(project: ProjectItem, *findings: dict[str, Any], **fields: Any) -> RunItem:
    """Audits the project's first website, and returns the completed run."""
    run = store.start_run(store.create_audit(project, project.websites[0].website_id, None))
    receive(report(run, *findings, **fields))
    completed = runs.find_run(run.project_id, run.audit_id, run.run_id)
    assert completed
    return completed
