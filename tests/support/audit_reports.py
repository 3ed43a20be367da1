"""Reports of audits, as the engine makes them."""

from typing import Any

from openassent_audit.messages import make_message

# What the worker adds to a message.
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
