"""Request bodies of 1 MB: a valid one and malicious ones."""

import json

from controlplane.platform.http.reader import MAX_BODY_BYTES as SIZE


def realistic() -> bytes:
    """Returns a JSON object like those of real clients, but larger."""
    rows, size = [], 0
    while size < SIZE - 1_000:
        row = {
            "id": f"prj_{len(rows):034d}",
            "name": f'Shop number {len(rows)} \u00e9 "quoted"',
            "websites": ["example.com", "*.example.org", f"shop{len(rows)}.test"],
            "consent": {"branding": "assent", "trustedOrigins": []},
            "count": len(rows),
            "ratio": len(rows) / 7,
            "archived": None,
            "description": "Lorem ipsum dolor sit amet. " * 2,
        }
        rows.append(row)
        size += len(json.dumps(row)) + 2
    return json.dumps({"rows": rows}).encode()


def _filled(start: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return start + unit * ((SIZE - len(start) - len(end)) // len(unit)) + end


def _numbered(pattern: bytes, count: int) -> bytes:
    return b"{" + b",".join(pattern % number for number in range(count)) + b"}"


JSON = {
    "a string with escaped quotes that never closes": _filled(b"[" + b"[]," * 70 + b'"', b'\\"'),
    "deep lists": _filled(b"", b"["),
    "deep objects": _filled(b"", b'{"a":'),
    "many lists": _filled(b"[", b"[],", b"[]]"),
    "many objects": _filled(b"[", b'{"a":0},', b"{}]"),
    "many nests": _filled(b"[", b"[" * 62 + b"]" * 62 + b",", b"[]]"),
    "many keys": _numbered(b'"%d":1', 100_000),
    "duplicate keys": _filled(b"{", b'"a":1,', b'"a":1}'),
    "one key twice at the end": _numbered(b'"%d":1', 9_000)[:-1] + b',"1":1}',
    "digits": _filled(b"[", b"1", b"]"),
    "many numbers": _filled(b"[", b"1,", b"x]"),
    "long numbers": _filled(b"[", b"1" * 1_000 + b",", b"x]"),
    "a long fraction": _filled(b"[0.", b"1", b"x]"),
    "a great exponent": _filled(b"[1e", b"9", b"]"),
    "great numbers": _filled(b"[", b"1e300,", b"1e400]"),
    "escapes": _filled(b'["', b"\\n", b'"'),
    "unicode escapes": _filled(b'["', b"\\u00e9", b'"'),
    "lone surrogates": _filled(b'["', b"\\ud800", b'"]'),
    "a lone surrogate at the end of many strings": _filled(b"[", b'"",', b'"\\ud800"]'),
    "invalid UTF-8 at the end": _filled(b'["', b"a", b'\xff"]'),
    # Each takes six bytes in the event's JSON, so a body as long as the others would be too large for Lambda.
    "NULs": b'["' + 1_000_000 * b"\0" + b'"]',
    "blanks": _filled(b"", b" "),
    "lines": _filled(b"", b"\n", b"x"),
}

FORMS = {
    "percent signs": _filled(b"a=", b"%"),
    "percent escapes": _filled(b"a=", b"%41"),
    "damaged escapes": _filled(b"a=", b"%zz"),
    "invalid UTF-8": _filled(b"a=", b"%ff"),
    "plus signs": _filled(b"a=", b"+"),
    "separators": _filled(b"", b"&"),
    "equal signs": _filled(b"", b"="),
    "many fields": _filled(b"", b"a=1&"),
    "a long name": _filled(b"", b"a", b"=1"),
}
