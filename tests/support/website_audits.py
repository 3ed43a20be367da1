"""Runs of website audits with a small made-up report, in the form that the engine writes (`Audit.as_json`)."""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controlplane.audits import runs, store
from controlplane.audits.items import (
    AuditItem,
    LatestRun,
    Proof,
    Reason,
    ReportItem,
    RunChanges,
    RunFinding,
    RunItem,
    RunVendor,
)
from controlplane.platform.core import clock
from controlplane.platform.table.table import Put, table
from tests.support.table import PREPARED

PAGE = "https://example.com/"
SCRIPT = "https://static.hotjar.com/c/hotjar-1.js"
_COOKIE = {
    "name": "_fbp",
    "domain": "example.com",
    "path": "/",
    "lifetimeSeconds": 31_536_000,
    "secure": True,
    "httpOnly": False,
    "sameSite": "Lax",
    "setBy": "",
    "page": PAGE,
    "at": 900,
    "afterChoice": False,
    "identifies": True,
    "pattern": "_fbp",
}


def request(at: int, url: str, vendor_id: str | None = None, **fields: Any) -> dict[str, Any]:
    usual = {"kind": "script", "page": PAGE, "afterChoice": False, "chain": [PAGE], "consent": {}}
    return {"url": url, "at": at, "vendorId": vendor_id, **usual, **fields}


def visit(choice: str, *requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    storage = [{"origin": "https://example.com", "kind": "local", "key": "cart", "afterChoice": False}]
    usual = {"answeredBy": None if choice == "untouched" else "klaro", "halted": None, "pages": [PAGE], "tcf": None}
    counted = {"requestCount": len(requests), "requests": list(requests), "consentMode": [], "refused": {}}
    return {"choice": choice, **usual, **counted, "cookies": [_COOKIE], "storage": storage, **fields}


def vendor(vendor_id: str, name: str, *, asks: bool = True, columns: str = "before refused accepted") -> dict[str, Any]:
    seen = {it: it in columns for it in ("before", "refused", "accepted")}
    category = "analytics" if asks else "payments"
    named = {"vendorId": vendor_id, "name": name, "domain": f"{vendor_id}.example.net", "category": category}
    return {**named, "aliasOf": None, "needsConsent": asks, **seen, "pages": [PAGE]}


def finding(kind: str, subject: str, title: str, priority: str = "P1") -> dict[str, Any]:
    named = {"id": f"{kind}:{subject}", "kind": kind, "title": title, "summary": title, "priority": priority}
    proof = {"description": "A request", "visit": "untouched", "page": PAGE, "at": 1, "url": SCRIPT, "chain": [PAGE]}
    return {**named, "vendorId": subject if "load" in kind else None, "cookie": None, "evidence": [proof]}


def report(outcome: str = "failed", **fields: Any) -> dict[str, Any]:
    """Returns a report: of a website that loads Hotjar in each visit, unless the fields say something else."""
    before, after = request(400, SCRIPT, "hotjar"), request(2_000, SCRIPT, "hotjar", afterChoice=True)
    own = request(100, PAGE, kind="document", chain=[])
    usual: dict[str, Any] = {
        "reason": None,
        "banner": {"library": "klaro", "isShown": True, "accepts": True, "refuses": True, "buttons": ["Yes", "No"]},
        "pages": [PAGE],
        "findings": [
            finding("loaded-before-consent", "hotjar", "Hotjar loads before consent"),
            finding("loads-after-refusal", "hotjar", "Hotjar loads after refusal"),
        ],
        "vendors": [vendor("hotjar", "Hotjar"), vendor("stripe", "Stripe", asks=False, columns="before")],
        "visits": [
            visit("untouched", own, before, request(500, "https://js.stripe.com/v3", "stripe")),
            visit("refused", own, before, after),
            visit("accepted", own, after),
        ],
    }
    if outcome != "failed":
        usual |= {"findings": [], "vendors": []}
    return {"outcome": outcome, **usual, **fields}


def complete(
    audit: AuditItem, told: Mapping[str, Any], picture: bytes | None = None, proof: str | None = None
) -> RunItem:
    """Completes the audit's active run, or a new one, with that report. Returns the run."""
    current = store.get_audit(audit.project_id, audit.audit_id)
    active = current.active_run_id
    run = runs.find_run(audit.project_id, audit.audit_id, active) if active else store.start_run(current)
    assert run is not None
    now = clock.timestamp()
    rest = {name: told[name] for name in ("visits", "banner", "pages")}
    found = tuple(RunFinding(*(it[name] for name in ("id", "kind", "title", "priority", "vendorId"))) for it in told["findings"])
    done = replace(run, status="completed", outcome=told["outcome"], finished_at=now, findings=found,
        reason=Reason(**told["reason"]) if told["reason"] else None, changes=RunChanges(tuple(it.id for it in found)))
    vendors = tuple(RunVendor(it["vendorId"], it["name"], it["domain"], it["category"], it["needsConsent"], it["before"], it["refused"], it["accepted"], it["aliasOf"], tuple(it["pages"])) for it in told["vendors"])
    stored = ReportItem(run_id=run.run_id, audit_id=audit.audit_id, project_id=audit.project_id, vendors=vendors,
        visits=base64.b64encode(gzip.compress(json.dumps(rest).encode())).decode(), picture=base64.b64encode(picture).decode() if picture else None)
    after = replace(store.get_audit(audit.project_id, audit.audit_id), active_run_id=None, latest_run=LatestRun(run.run_id, told["outcome"], now),
        proof=Proof(proof, now) if proof else None)
    for it in (done, stored, after):
        table.put(Put(it.to_item()), PREPARED)
    return done
