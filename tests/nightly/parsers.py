"""The functions that read text from clients, repositories, or AWS, each as a call with one text.

A new parser of such text belongs in the table. Expressions are found without it (`expressions.py`).
"""

import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from analysis_testing.in_process import analyze_files
from code_audit import preferences
from controlplane.access import web_session
from controlplane.api_keys import rules as api_keys
from controlplane.code_host.github.transport import Transport
from controlplane.findings import issues
from controlplane.findings.items import Evidence, InboxItem
from controlplane.notify import subscriptions
from controlplane.platform.core import errors, ids, keyring, naming, observability
from controlplane.platform.core.settings import settings
from controlplane.platform.http import reader
from controlplane.platform.http.client_address import client_address
from controlplane.platform.http.fields import to_timestamp
from controlplane.platform.queues import worker
from controlplane.platform.table import refusals
from controlplane.projects import origins
from dashboard.access import sign_in
from dashboard.findings import highlighting
from device_auth.dialect import OAuthForm
from github_events import reports
from issue_creation import text as issue_text
from openassent_analysis import (
    addresses,
    comments,
    engine,
    files,
    gating,
    libraries,
    mechanisms,
    project_file,
    report,
    secrecy,
    unknown,
)
from openassent_analysis.blocks import Block
from openassent_analysis.calls import calls as vendor_calls
from openassent_analysis.catalogue import catalogue
from openassent_analysis.choices import choices_in
from openassent_analysis.examine import examine
from openassent_analysis.gates import options
from openassent_analysis.gates.texts import implied_by_text
from openassent_analysis.gating import OPEN, Export, Gate, Gating, Use
from openassent_analysis.inventory import manifests as stocked
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.limits import Limits
from openassent_analysis.links import Links
from openassent_analysis.modules import Content
from openassent_analysis.report import OWN, USES, Report
from openassent_analysis.selection import Selection
from openassent_analysis.sites import Sites
from openassent_analysis.sources import Source
from openassent_analysis.templates.dialects import DIALECTS
from openassent_analysis.templates.reading import read_template
from openassent_analysis.values import values
from openassent_analysis.vocabulary import Vocabulary
from scan_execution import workspace
from scan_execution.app import ACCEPTED

type Call = Callable[[str], object]

_PROXY = (ip_network("192.0.2.0/24"),)
_LIMITS = Limits()
_LANGUAGES = ("html", "javascript", "typescript", "tsx", "python")
# The usual limits on line length would hide the cost of the text.
_ANY_LINE = Limits(max_line_length=10**9, minified_line_length=10)
_UNHURRIED = Limits(max_line_length=10**9, minified_line_length=10**9, max_seconds_per_file=1_000)
BODY, FILE = 262_144, 131_072
# One template of each language.
TEMPLATES = [f"a.{extension}" for extension in {kind: name for name, kind in DIALECTS.items()}.values()]


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _item(text: str) -> InboxItem:
    evidence = Evidence(text, f"https://a.test/{text}", f"a/{text}", start_line=1, end_line=2, snippet=text)
    values = dict.fromkeys((field.name for field in fields(InboxItem)), None) | dict.fromkeys(
        ("title", "summary", "description", "remediation", "rule_id"), text
    )
    return InboxItem(**values | {"references": (text,), "evidence": (evidence, evidence)})


def _sources(text: str) -> Iterator[Source]:
    # The prefix triggers the rules, so that every file is analyzed.
    vendor = "fetch('https://www.google-analytics.com/collect'); import mixpanel from 'mixpanel-browser'\n"
    for language in ("html", "tsx"):
        yield Source(f"a.{language}", vendor + text, language, catalogue())


def _read_sources(text: str) -> None:
    """Reads the properties of a file that don't need its syntax tree."""
    for source in _sources(text):
        _ = source.addresses, source.packages, source.imported, source.holders, source._line_starts
        source.template_conditions(len(text) // 2)
        mechanisms.asks_for_consent(source)
        mechanisms.sets_consent_mode(source)
        addresses.wanted(source)
        engine.triggers().possible(source)


def _read_choices(text: str) -> None:
    for path, language in (("a.php", "html"), ("a.py", "python")):
        choices_in(path, f"function agreed() {{ return $_COOKIE['cookie_consent'] {text}; }} {text}", language)


def _fold(text: str) -> None:
    # As a string, because the parser itself takes quadratic time for some invalid code.
    block = Block("javascript", f"a.src = `${{{json.dumps(text)}}}.test/` + {json.dumps(text)}", 0)
    for node in block.root.find_all({"rule": {"any": [{"kind": "binary_expression"}, {"kind": "template_string"}]}}):
        values(block, node)


def _read_templates(text: str) -> None:
    for path in TEMPLATES:
        found = read_template(path, text)
        assert found
        found.tests_at(len(found.code) // 2), found.origin(len(found.code))


def _addresses(text: str) -> None:
    data = json.dumps({"a": {"b": text}})
    for language, code, names in (
        ("javascript", f"export const A = {json.dumps('//' + text)}; export default {data}", ("A", "default.a.b")),
        ("json", data, ("default.a.b",)),
    ):
        source = Source(f"a.{language}", code, language, catalogue())
        addresses.given_by(source, names, _UNHURRIED)
        addresses.given_by(source, [text], _UNHURRIED)


def _read_options(text: str) -> None:
    for source in _sources(text):
        for vendor in options._STARTS_OF:
            options._calls(source, vendor)


def _find_calls(text: str) -> None:
    words = Vocabulary(text)
    vendor_calls().in_text(text, words)
    [*vendor_calls().places_in(words)]


def _locate(text: str) -> None:
    source = Source("a.js", text, "javascript", catalogue())
    engine.locate(source, 0, len(text), _LIMITS)


def _check_lines(text: str) -> None:
    for language in ("html", "javascript"):
        with suppress(files.Skipped):
            files.check_lines("a.html", text, _ANY_LINE, language)


def _check_copy(text: str) -> None:
    for banner in (text, f"/*!{text}", f"/*! @license v1.2.3 {text}*/"):
        for path in ("site.js", "jquery.tabs.js"):
            with suppress(files.Skipped):
                files.check_copy(path, banner + " " * 8_000)


def _check_depth(text: str) -> None:
    for language in _LANGUAGES:
        files.check_depth(text, language, _LIMITS)


def _unpacking() -> workspace._Unpacking:
    stream = workspace._Stream(iter(()), 0)
    return workspace._Unpacking(
        stream, Path("/nowhere"), workspace.DEFAULT_LIMITS, (), None, lambda *_: None, Listing().leave_out
    )


def _read_extended(text: str) -> None:
    _unpacking()._read_extended(as_bytes(text))


def _take_entry(text: str) -> None:
    unpacking = _unpacking()
    unpacking._next_size = None
    unpacking._take_entry(tarfile.REGTYPE, text, 0)


def _unpack(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace.unpack(
            iter([as_bytes(text)]), Path(folder), reason_to_skip=lambda *_: None, leave_out=lambda *_: None
        )


def _client_address(text: str) -> None:
    known = dict(settings.__dict__)
    settings.__dict__ |= {"trusted_proxy_header": "X-Forwarded-For", "trusted_proxy_addresses": _PROXY}
    try:
        client_address("192.0.2.1", lambda _: [text])
    finally:
        settings.__dict__.update(known)


def _manifests(text: str) -> None:
    for name in ("package.json", "yarn.lock"):
        analyze_files([(f"a/{name}", as_bytes(f'{{"dependencies":{{"cookieconsent":"1","a":"{text}"}}}}'))])
        analyze_files([(f"a/{name}", as_bytes(text))])


def _uses(text: str) -> None:
    # As strings, because the parser itself takes quadratic time for some invalid code.
    for path, language in (("a.tsx", "tsx"), ("a.vue", "html")):
        code = f"import a from './a'; a({json.dumps(text)}); import({json.dumps('./' + text)})"
        code = f"<script>{code}</script>" if language == "html" else code
        with suppress(files.Skipped):
            examine(path, f"{USES}{language} a a{OWN}", as_bytes(code), _UNHURRIED)


def _link(text: str) -> None:
    links = Links([text, f"a/{text}.ts", "a/b.ts"])
    links.add(text, Report(providers=[gating.Provider(text, Export(text, text))]))
    links.add("a/b.ts", Report(uses=[Use(Export(module, text), OPEN) for module in ("", text, f"./{text}")]))
    waits = Gating(Gate.CALLERS, (text,), (Export(text, text),))
    links.use(text, text)
    links.frontier(text, waits)
    links.verdict(text, waits)


def _content(text: str) -> None:
    content = Content(["layouts/shortcodes/a.html", "templates/shortcodes/b.html", "_includes/c.html", "src/D.tsx"])
    content.may_use(text)
    content.used_in("page.mdx", text.encode())


def _site(text: str) -> None:
    sites = Sites()
    for path in (text, f"{text}/package.json"):
        sites.add(path, [text])
        sites.runs(path)


def _inventory(text: str) -> None:
    for path in ("package.json", "pyproject.toml", "requirements.txt", "Gemfile", "go.mod", "mix.exs", "a.csproj"):
        [*stocked.parts_of(path, text)]


def _listed(text: str) -> None:
    listing = Listing()
    listing.take(text, 1)
    listing._take_signs(text, 1)
    listing.leave_out(text, "too large")


def _library(text: str) -> None:
    for library in islice(libraries.libraries().values(), 3):
        libraries.newest_is_outdated(library, text)
        libraries._rule_of(library, text)


def _explain_problems(text: str) -> None:
    refusals._problem({"code": "invalid", "message": text, "path": [text]}, (text,))


def _read_message(text: str) -> None:
    for body in (text, json.dumps({"kind": text, "version": text})):
        with suppress(worker.Malformed):
            worker._parse(ACCEPTED, body)


def _open_note(text: str) -> None:
    sign_in._open_note("a" * 43, lambda _: text)


# By name: the call, or the call and the longest text to try if the usual length is too short.
def _ignores(text: str) -> None:
    for path, language in (("a.js", "javascript"), ("a.erb", "html")):
        files.check_depth(text, language, _LIMITS)
        comments.ignores_in(engine.source_of(path, f"// assent-ignore: a -- b\n{text}", language))
        comments.ignores_in(engine.source_of(path, text.replace("\n", " ") + " assent-ignore: a -- b", language))


PARSERS: dict[str, Call | tuple[Call, int]] = {
    # Requests
    "JSON body": (lambda text: reader.parse_strictly(as_bytes(text)), BODY),
    "body": (lambda text: reader._parse_json(as_bytes(text), "application/json", "identity"), BODY),
    "form of a page": lambda text: web_session._read_form(
        web_session._FORM_TYPE, as_bytes(text), 64, reader.MAX_FORM_BYTES
    ),
    "form of OAuth": lambda text: OAuthForm().read(as_bytes(text)),
    "pairs": lambda text: reader.parse_pairs(as_bytes(text), 64),
    "note of a session": lambda text: web_session._read_note(text, text),
    "cookies": web_session._read_cookies,
    "note of a sign-in": _open_note,
    "client address": _client_address,
    "name of a parameter": lambda text: errors.did_you_mean(text, ["organizationId"]),
    "preference": preferences.read_wait,
    "time": to_timestamp,
    "cursor": lambda text: keyring.open_cursor(("a",), text),
    "ID": ids.KeyId.parse,
    "ID of a request": ids.request_began_at,
    "email address": naming.normalize_email,
    "name": naming.clean_name,
    "slug": naming.slugify,
    "branch": naming.is_branch,
    "folder": naming.is_folder,
    "website": origins.parse_origin,
    "network": lambda text: api_keys._read_network(text, []),
    "link of an unsubscription": subscriptions.read_link,
    "problems": _explain_problems,
    "log line": observability.scrub,
    # Messages and the code host
    "message": _read_message,
    "address at the code host": lambda text: Transport("https://a.test").url(text, page=text),
    "ID of a report": reports.parse_external_id,
    "number of an issue": lambda text: issues._parse_number(
        text, lambda: cast("Any", SimpleNamespace(html_url="https://a.test", owner="a", name="b"))
    ),
    "text of an issue": lambda text: issue_text.compose(_item(text), "marker"),
    "marker of an issue": lambda text: issue_text.has_marker(text, "marker"),
    "code on a page": highlighting.highlight,
    # Archives
    "archive": _unpack,
    "extended header": (_read_extended, 65_536),
    "entry of an archive": _take_entry,
    # Code
    "manifests": _manifests,
    "inventory": _inventory,
    "listing": _listed,
    "versions of libraries": _library,
    "lines": (_check_lines, FILE),
    "copies of libraries": _check_copy,
    "depth": (_check_depth, FILE),
    "properties of a file": _read_sources,
    "addresses of other files": _addresses,
    "constants": _fold,
    "templates": _read_templates,
    "choices of server code": _read_choices,
    "gates of templates": lambda text: implied_by_text(text, holds=True),
    "options of consent libraries": _read_options,
    "places": _locate,
    "calls of vendors": _find_calls,
    "vendors in text": lambda text: [*catalogue().addresses_in(text), *catalogue().packages_in(text)],
    "vendor of a host": lambda text: catalogue().vendor_of(text, text),
    "unknown hosts": (lambda text: unknown.may_load_unknown(catalogue(), f"<script {text}"), FILE),
    "uses": _uses,
    "links of files": _link,
    "content": _content,
    "sites": _site,
    "globs": lambda text: Selection(exclude=(f"*{text[:250]}*",), include=("a*/**/*b*a",)).reason_to_skip(text),
    "settings of a project": project_file.parsed,
    "comments to ignore findings": _ignores,
    "masked secrets": secrecy.mask,
    "comments": files.without_open_comments,
    "report of a child": lambda text: report.read_report(as_bytes(text), 200),
}
