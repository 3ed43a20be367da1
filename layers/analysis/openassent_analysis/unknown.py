"""Recognizes scripts that a page loads from a third party that the catalogue doesn't contain.

Precise rather than complete: an address counts only if it says that another party's code runs. So addresses with
placeholders, the site's own hosts, static files of known content, and well-known libraries don't.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from openassent_analysis.catalogue import Catalogue
from openassent_analysis.reading import alternatives, pattern_of, resource

# The start of a script element or component up to the next tag. Matches don't overlap, so this reads a text once.
_SCRIPT: Final = re.compile(r"<script\b[^<]{0,2000}", re.IGNORECASE)
# The whole value of an attribute or a string that is an address with a literal host.
_ADDRESS: Final = re.compile(
    r"""(?:https?:)?//((?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}[a-z]{2,24})(?::\d{1,5})?(/[^\s"'`<>]{0,500})?""",
    re.IGNORECASE,
)
_HOSTS: Final = resource("hosts")
_RESERVED: Final = pattern_of(_HOSTS["reserved"])
_LIBRARY: Final = re.compile(
    rf"/(?:[\w.@-]{{1,60}}/){{0,8}}(?:{alternatives(_HOSTS['libraries'])})(?![a-z])[\w.-]*\.js(?:$|\?)", re.IGNORECASE
)
_SERVICE: Final = pattern_of(
    f"{_HOSTS['services']}\n^(?:[\\w-]+\\.)*(?:{alternatives(_HOSTS['payments'])})\\.[a-z.]{{2,12}}(?:/|$)",
    re.IGNORECASE,
)
# A release of a library, which can't change: /releases/8.12.1/js/core.min.js. Services have at most a major version.
_RELEASE: Final = re.compile(r"(?<=[/v@_-])\d{1,3}\.\d{1,3}\.\d{1,4}(?!\d)[^?#]{0,400}\.m?js(?:$|[?#])", re.IGNORECASE)
# An address at the beginning of a string or an attribute in code.
_IN_CODE: Final = re.compile(r"""(?<=["'`=])(?:https?:)?//(?=[a-z0-9-]{1,63}\.)""", re.IGNORECASE)
# A scheme that code puts in front of a host, and the beginning of an address without one.
_SCHEME: Final = re.compile(r"""["'`](?:https?:)?//["'`]""", re.IGNORECASE)
_AFTER_SCHEME: Final = re.compile(r"""(?<=["'`])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}/""", re.IGNORECASE)
# Code that makes an element for a script, and the path of a script.
CREATED: Final = re.compile(r"""createElement\(\s{0,8}["'`]script\b""", re.IGNORECASE)
_CREATES: Final = re.compile(rf"{CREATED.pattern}|[sS]cript\w{{0,20}}\(|[\"'`]scripts?[\"'`]|\bscripts?\s{{0,4}}:")
SCRIPT_FILE: Final = re.compile(r"""^[^?#\s"'`<>]{1,400}\.m?js(?=[?#\s"'`<>]|$)""", re.IGNORECASE)
# An attribute says that the content can't change.
_FIXED: Final = re.compile(r"integrity", re.IGNORECASE)
# Tags of analytics without identifiers, on hosts of the sites' own: an attribute with its value, and the script's path.
_COMPUTED: Final = r"""\{(?!["'`])|["'`]?[^"'`>]{0,200}(?:\{\{|\$\{|<|___)"""
_SELF_HOSTED: Final = [
    (
        re.compile(
            rf"""\b{it["attribute"]}\s*=\s*(?:{_COMPUTED}|\{{?["'`]?(?:{it["value"]})["'`}}\s>])""", re.IGNORECASE
        ),
        re.compile(it["path"]),
    )
    for it in _HOSTS["self_hosted"]
]
# Elements that may state the site's own address.
_STATES: Final = re.compile(r"<(?:link|meta|base|img)\b[^<>]{0,600}", re.IGNORECASE)
# A page's icons and pictures come from its own hosts, also if these have another name.
_OWN: Final = ("canonical", "og:url", "<base", "icon", "<img")
# Up to an image that browsers without scripts show instead of a third party's script.
_LONGEST_NOSCRIPT: Final = 1_000
_PICTURE: Final = re.compile(r"\.(?:svg|png|jpe?g|webp|avif|ico)\b", re.IGNORECASE)
_MAX_OWN: Final = 20
# Shorter labels are in too many names: as a word, and as a part of a word.
_SHORTEST_LABEL: Final = 3
_SHORTEST_PART: Final = 5
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")
_GENERAL: Final = frozenset(_HOSTS["general"])
# Settings that name the site's own address: Hugo, Jekyll, MkDocs, Astro, Gatsby, Docusaurus, package.json, and others.
_SITE: Final = re.compile(
    r"""(?:\b(?:base_?url|site_?url|site|homepage|hostname|canonical_?url|domain)|^[ \t]{0,2}url)["']?[ \t]{0,8}[:=][ \t]{0,8}["']?(?=https?://)""",
    re.IGNORECASE | re.MULTILINE,
)
_HOST: Final = re.compile(r"\s*(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\s*", re.IGNORECASE)
# Second-level domains below which a country's sites register.
_SHARED: Final = frozenset({"co", "com", "org", "gov", "ac", "net", "edu", "or", "ne", "go", "gob", "gouv"})


def unknown_host(catalogue: Catalogue, address: str) -> str | None:
    """Returns the host of the address of a script if it is an unknown third party's, or None."""
    match = _ADDRESS.match(address.strip())
    if not match:
        return None
    host, path = match[1].lower(), match[2] or ""
    if catalogue.knows(host) or _RESERVED.search(host) or _SERVICE.search(host + path):
        return None
    return None if _LIBRARY.match(path) or _RELEASE.search(path) else host


def is_known_tag(element: str, address: str) -> bool:
    """Returns whether a script's element says that its content can't change, or that it sets no identifiers."""
    return _FIXED.search(element) is not None or any(
        attribute.search(element) and path.search(address) for attribute, path in _SELF_HOSTED
    )


def may_load_unknown(catalogue: Catalogue, text: str) -> bool:
    """Returns whether a text may load a script from an unknown host, in an element or in code, without parsing."""
    for element in _SCRIPT.finditer(text):
        at = text.find("//", element.start(), element.end())
        while at >= 0:
            if unknown_host(catalogue, text[at : min(at + 300, element.end())]):
                return True
            at = text.find("//", at + 2, element.end())
    any_path: bool | None = None
    for written in _addresses_in_code(text):
        if not unknown_host(catalogue, written):
            continue
        if SCRIPT_FILE.match(written):
            return True
        if any_path is None:
            any_path = _CREATES.search(text) is not None
        if any_path:
            return True
    return False


def _addresses_in_code(text: str) -> Iterator[str]:
    yield from (text[found.start() : found.start() + 500] for found in _IN_CODE.finditer(text))
    if _SCHEME.search(text):
        yield from (f"//{text[found.start() : found.start() + 500]}" for found in _AFTER_SCHEME.finditer(text))


def own_names(text: str) -> set[str]:
    """Returns the registrable names of the hosts that a page says it is served from."""
    found: set[str] = set()
    for element in _STATES.finditer(text):
        if not any(word in element[0].lower() for word in _OWN):
            continue
        match = _ADDRESS.search(element[0])
        if match and (element[0][1:4].lower() != "img" or _is_own_picture(text, element.start(), match[2] or "")):
            found.add(registrable(match[1]))
            if len(found) == _MAX_OWN:
                break
    return found


def _is_own_picture(text: str, offset: int, path: str) -> bool:
    """Returns whether an image is a picture, and not a third party's tracking pixel."""
    before = text[max(0, offset - _LONGEST_NOSCRIPT) : offset].lower()
    return _PICTURE.search(path) is not None and before.rfind("<noscript") <= before.rfind("</noscript")


def configured_names(text: str) -> set[str]:
    """Returns the registrable names of the hosts that a configuration, a manifest, or a CNAME file states."""
    if _HOST.fullmatch(text):
        return {registrable(text.strip())}
    found: set[str] = set()
    for setting in _SITE.finditer(text):
        if match := _ADDRESS.match(text, setting.end()):
            found.add(registrable(match[1]))
            if len(found) == _MAX_OWN:
                break
    return found


def registrable(host: str) -> str:
    """Returns the part of a host that a site registers: an estimate that errs on the side of equal names."""
    labels = host.lower().split(".")
    shared = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SHARED
    return ".".join(labels[-3 if shared else -2 :])


def is_named_after(name: str, repository: str) -> bool:
    """Returns whether a registrable name is the owner's or the project's of a repository (OWNER/NAME)."""
    label = _plain(name.partition(".")[0])
    if len(label) < _SHORTEST_LABEL or label in _GENERAL:
        return False
    return any(
        label == _plain(part)
        or label in map(str.lower, _WORD.findall(part))
        or (len(label) >= _SHORTEST_PART and label in _plain(part))
        for part in repository.split("/")
    )


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
