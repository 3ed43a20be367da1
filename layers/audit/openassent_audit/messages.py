"""The message with which a worker reports an audit to the service (docs/intake.md): bounded, whatever a page did.

It is trimmed until it fits: first the requests, then evidence, and the picture last.
"""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

# A message of SQS may have 256 KiB. The sender adds a few fields.
MOST_BYTES: Final = 238_000
MOST_PICTURE_BYTES: Final = 60_000
_TITLE, _TEXT, _ID, _NAME = 200, 500, 300, 100
_NOT_IN_HOST: Final = re.compile(r"[^a-z0-9._:-]")


class _Size(NamedTuple):
    """How much of a report is sent. Of each finding: evidence, and the scripts in its chain. Of each vendor: pages.

    entries: of each other list of a visit.
    """

    requests: int
    evidence: int
    chain: int
    pages: int
    address: int
    findings: int
    vendors: int
    entries: int

    def smaller(self) -> "_Size":
        return _Size(*(max(1, it // 2) for it in self))


_SIZES: Final = (
    _Size(300, 5, 6, 5, 300, 100, 200, 200),
    _Size(150, 5, 6, 5, 300, 100, 200, 200),
    _Size(60, 3, 3, 3, 300, 100, 200, 100),
    _Size(20, 1, 1, 1, 300, 100, 200, 50),
)


def make_message(report: Mapping[str, Any], made: Sequence[str], picture: bytes | None) -> dict[str, Any]:
    """Returns the message, without the IDs, the claim, and the proof, which the sender adds.

    report: see `Audit.as_json`. made: the visits that ran to their end.
    """
    if picture is not None and len(picture) > MOST_PICTURE_BYTES:
        picture = None
    for size in _SIZES:
        message = _sized(report, made, picture, size)
        if _fits(message):
            return message
    while not _fits(message := _sized(report, made, None, size)):
        size = size.smaller()
    return message


def _fits(message: Mapping[str, Any]) -> bool:
    return len(json.dumps(message)) <= MOST_BYTES


def _sized(report: Mapping[str, Any], made: Sequence[str], picture: bytes | None, size: _Size) -> dict[str, Any]:
    rest = {
        "visits": [_visit(it, size) for it in report["visits"]],
        "banner": _banner(report["banner"]),
        "pages": [_cut(it, size.address) for it in report["pages"][:10]],
    }
    packed = gzip.compress(json.dumps(rest).encode(), mtime=0)
    reason = report["reason"]
    return {
        "kind": "website-audit-report",
        "version": 1,
        "outcome": report["outcome"],
        "reason": {"code": reason["code"], "message": _cut(reason["message"], _TEXT)} if reason else None,
        "finishedAt": report["finishedAt"],
        # A finding that the report leaves out isn't gone.
        "made": [] if len(report["findings"]) > size.findings else list(made),
        "findings": [_finding(it, size) for it in report["findings"][: size.findings]],
        "vendors": [_vendor(it, size) for it in report["vendors"][: size.vendors]],
        "visits": base64.b64encode(packed).decode(),
        "picture": base64.b64encode(picture).decode() if picture else None,
    }


def _cut(text: str, length: int) -> str:
    """Returns the text without what can't be shown, and not longer than that."""
    shown = text if len(text) <= length else text[: length - 1] + "…"
    return shown if shown.isprintable() else "".join(it if it.isprintable() else " " for it in shown)


def _identified(text: str) -> str:
    """Returns an ID that can be shown, isn't too long, and is still its own, the same in every audit."""
    shown = _cut(text, _ID)
    if shown == text:
        return text
    return f"{shown[: _ID - 17]}~{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _maybe(text: str | None, length: int) -> str | None:
    return _cut(text, length) or None if text is not None else None


def _finding(finding: Mapping[str, Any], size: _Size) -> dict[str, Any]:
    return {
        "id": _identified(finding["id"]),
        "kind": finding["kind"],
        "title": _cut(finding["title"], _TITLE),
        "summary": _cut(finding["summary"], _TEXT),
        "priority": finding["priority"],
        "vendorId": finding["vendorId"],
        "evidence": [
            {
                "description": _cut(it["description"], _TEXT),
                "visit": it["visit"],
                "page": _cut(it["page"], size.address),
                "at": it["at"],
                "url": _maybe(it["url"], size.address),
                "chain": [_cut(url, size.address) for url in it["chain"][: size.chain]],
            }
            for it in finding["evidence"][: size.evidence]
        ],
    }


def _vendor(vendor: Mapping[str, Any], size: _Size) -> dict[str, Any]:
    return {
        **vendor,
        "name": _cut(vendor["name"], _NAME),
        "domain": _NOT_IN_HOST.sub("-", vendor["domain"].lower())[:253],
        "aliasOf": _maybe(vendor["aliasOf"], 253),
        "pages": [_cut(it, size.address) for it in vendor["pages"][: size.pages]],
    }


def _banner(banner: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if banner is None:
        return None
    buttons = [_cut(it, _NAME) for it in banner["buttons"][:12]]
    return {**banner, "library": _maybe(banner["library"], _NAME), "buttons": buttons}


def _visit(visit: Mapping[str, Any], size: _Size) -> dict[str, Any]:
    # Requests to vendors first, in the order in which they were sent.
    requests = sorted(visit["requests"], key=lambda it: it["vendorId"] is None)[: size.requests]
    tcf = visit["tcf"]
    return {
        **visit,
        "answeredBy": _maybe(visit["answeredBy"], _NAME),
        "halted": _maybe(visit["halted"], _TEXT),
        "pages": [_cut(it, size.address) for it in visit["pages"][:10]],
        "consentMode": [
            {"command": _cut(it["command"], 30), "signals": _texts(it["signals"])}
            for it in visit["consentMode"][: size.entries]
        ],
        # Without the TCF string, which may identify a visitor.
        "tcf": {"cmpId": _number(tcf["cmpId"]), "eventStatus": _cut(tcf["eventStatus"], 60)} if tcf else None,
        "requests": sorted((_request(it, size) for it in requests), key=lambda it: it["at"]),
        "cookies": [_cookie(it, size) for it in visit["cookies"][: size.entries]],
        "storage": [
            {**it, "origin": _cut(it["origin"], size.address), "key": _cut(it["key"], _NAME)}
            for it in visit["storage"][: size.entries]
        ],
        "refused": _texts(visit["refused"]),
    }


def _texts(named: Mapping[str, Any]) -> dict[str, str]:
    return {_cut(name, 253): _cut(str(it), 200) for name, it in list(named.items())[:20]}


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _request(sent: Mapping[str, Any], size: _Size) -> dict[str, Any]:
    return {
        **sent,
        "url": _cut(sent["url"], size.address),
        "page": _cut(sent["page"], size.address),
        "chain": [_cut(url, size.address) for url in sent["chain"][: size.chain]],
        "consent": _texts(sent["consent"]),
    }


def _cookie(cookie: Mapping[str, Any], size: _Size) -> dict[str, Any]:
    lifetime = cookie["lifetimeSeconds"]
    return {
        **{name: _cut(it, size.address) if isinstance(it, str) else it for name, it in cookie.items()},
        "name": _cut(cookie["name"], _NAME),
        "pattern": _cut(cookie["pattern"], _NAME),
        # A page can ask for ages beyond all numbers. A browser keeps a cookie for 400 days.
        "lifetimeSeconds": None if lifetime is None else min(lifetime, 2**31),
    }
