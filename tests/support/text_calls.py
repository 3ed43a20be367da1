"""Calls each function that reads text with hostile text.

A function is called directly if its other arguments are numbers, flags, collections, or more text. One that needs more
has an adapter here. All others are exempt (`text_exemptions.py`).
"""

import json
import tarfile
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from controlplane.core.settings import settings
from controlplane.github.transport import Transport
from controlplane.http import explanations, reader, strict_json, web_session
from controlplane.http.client_address import client_address
from controlplane.queues import worker
from controlplane.rules import issues
from controlplane.store.inbox_items import Evidence, InboxItem
from dashboard import sign_in
from dashboard.provider import Provider
from device_auth.dialect import OAuthForm
from github_events import reports
from issue_creation import text as issue_text
from openassent_analysis import (
    addresses,
    engine,
    files,
    gates,
    gating,
    libraries,
    loading,
    manifests,
    mechanisms,
    unknown,
)
from openassent_analysis.blocks import Block
from openassent_analysis.calls import calls as vendor_calls
from openassent_analysis.catalogue import catalogue
from openassent_analysis.examine import examine
from openassent_analysis.fingerprints import Fingerprints
from openassent_analysis.gates import options
from openassent_analysis.gating import OPEN, Export, Gate, Gating, Use
from openassent_analysis.identities import covers
from openassent_analysis.inventory import manifests as stocked
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.inventory.technologies import technologies
from openassent_analysis.limits import Limits
from openassent_analysis.links import Links
from openassent_analysis.prose import Content
from openassent_analysis.report import OWN, USES, Report
from openassent_analysis.sites import Sites
from openassent_analysis.sources import Source
from openassent_analysis.templates import read_template
from openassent_analysis.templates.dialects import DIALECTS
from openassent_analysis.values import values
from scan_execution import workspace
from scan_execution.identities import Sight
from scan_execution.messages import ACCEPTED
from scan_execution.omissions import failure
from system import documents
from tests.support.analysis import analyze_files
from tests.support.text_code import TextFunction, signature

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
        _ = source.addresses, source.packages, source.imported, source._line_starts
        source.template_conditions(len(text) // 2)
        mechanisms.asks_for_consent(source)
        mechanisms.sets_consent_mode(source)
        addresses.wanted(source)
        engine.triggers().possible(source)


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


def _locate(text: str) -> None:
    source = Source("a.js", text, "javascript", catalogue())
    engine.locate(source, 0, len(text), _LIMITS, (text[:100],))


def _check_lines(text: str) -> None:
    for language in ("html", "javascript"):
        with suppress(files.Skipped):
            files.check_lines(text, _ANY_LINE, language)


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
        stream, Path("/nowhere"), workspace.DEFAULT_LIMITS, None, reason_to_skip=str, leave_out=Listing().leave_out
    )


def _read_extended(text: str) -> None:
    _unpacking()._read_extended(as_bytes(text))


def _refuse_entry(text: str) -> None:
    unpacking = _unpacking()
    unpacking._next_size = None
    unpacking._take_entry(tarfile.REGTYPE, text, 0)


def _unpack(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace.unpack(iter([as_bytes(text)]), Path(folder))


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
        consume(iter(stocked.parts_of(path, text)))
    stocked._table({"a": {}}, text)


def _listed(text: str) -> None:
    listing = Listing()
    listing.take(text, 1)
    listing._take_signs(text, 1)
    listing.leave_out(text, "too large")


def _library(text: str) -> None:
    for library in islice(libraries.libraries().values(), 3):
        libraries.newest_is_outdated(library, text)
        manifests._rule_of(library, text)


def _explain_problems(text: str) -> None:
    explanations._problems([{"code": "invalid", "message": text, "path": [text]}], text)


def _read_message(text: str) -> None:
    for body in (text, json.dumps({"kind": text, "version": text})):
        with suppress(worker.Malformed):
            worker._parse(ACCEPTED, body)


def _open_note(text: str) -> None:
    sign_in._open_note("a" * 43, lambda _: text)


# By function name: the call, or the call and the longest text to try if the usual length is too short.
ADAPTERS: dict[str, Call | tuple[Call, int]] = {
    "controlplane.http.reader:_parse_json": (
        lambda text: reader._parse_json(as_bytes(text), "application/json", "identity"),
        BODY,
    ),
    "controlplane.http.strict_json:loads": (lambda text: strict_json.loads(as_bytes(text)), BODY),
    "controlplane.http.client_address:client_address": _client_address,
    "controlplane.http.explanations:_problems": _explain_problems,
    "controlplane.github.transport:Transport.url": lambda text: Transport("https://a.test").url(text, page=text),
    "controlplane.http.web_session:_read_form": lambda text: web_session._read_form(
        web_session._FORM_TYPE, as_bytes(text), 64
    ),
    "controlplane.http.web_session:_read_note": lambda text: web_session._read_note(text, text),
    "dashboard.provider:Provider.is_named": lambda text: Provider("https://a.test").is_named(text),
    "dashboard.sign_in:_open_note": _open_note,
    "device_auth.dialect:OAuthForm.read": lambda text: OAuthForm().read(as_bytes(text)),
    "github_events.reports:parse_external_id": reports.parse_external_id,
    "controlplane.queues.messages:is_newer": _read_message,
    "controlplane.queues.worker:_parse": _read_message,
    "controlplane.rules.issues:_parse_number": lambda text: issues._parse_number(
        text, lambda: cast("Any", SimpleNamespace(html_url="https://a.test", owner="a", name="b"))
    ),
    "issue_creation.text:compose": lambda text: issue_text.compose(_item(text), "marker"),
    "issue_creation.text:_title": lambda text: issue_text._title(text, Evidence(text, None, text)),
    "openassent_analysis.calls:Calls.places_in": lambda text: [*vendor_calls().places_in(text)],
    "openassent_analysis.catalogue:Catalogue.addresses_in": lambda text: [*catalogue().addresses_in(text)],
    "openassent_analysis.catalogue:Catalogue.first_in": lambda text: catalogue().first_in(text),
    "openassent_analysis.catalogue:Catalogue.host_at": lambda text: catalogue().host_at(text),
    "openassent_analysis.catalogue:Catalogue.named_in": lambda text: [*catalogue().named_in(text)],
    "openassent_analysis.catalogue:Catalogue.knows": lambda text: catalogue().knows(text),
    "openassent_analysis.catalogue:Catalogue.package": lambda text: catalogue().package(text),
    "openassent_analysis.catalogue:Catalogue.packages_in": lambda text: catalogue().packages_in(text),
    "openassent_analysis.catalogue:Catalogue.vendors_at": lambda text: list(catalogue().vendors_at(text)),
    "openassent_analysis.catalogue:Catalogue.vendor_of": lambda text: catalogue().vendor_of(text, text),
    "openassent_analysis.calls:Calls.in_text": lambda text: [*vendor_calls().in_text(text, text)],
    "openassent_analysis.calls:Calls.of_call": lambda text: vendor_calls().of_call(text, text),
    "openassent_analysis.calls:Calls.of_element": lambda text: vendor_calls().of_element(text),
    "openassent_analysis.calls:Calls.of_path": lambda text: vendor_calls().of_path(text),
    "openassent_analysis.calls:Calls.of_setting": lambda text: vendor_calls().of_setting(text, text),
    "openassent_analysis.engine:locate": _locate,
    "openassent_analysis.files:check_depth": (_check_depth, FILE),
    "openassent_analysis.files:check_lines": (_check_lines, FILE),
    "openassent_analysis.fingerprints:Fingerprints.take": lambda text: Fingerprints("a").take("rule", text),
    "openassent_analysis.gates:template_gates": lambda text: gates.template_gates(text, holds=True),
    "openassent_analysis.gates.options:_calls": _read_options,
    "openassent_analysis.mechanisms:_has": _read_sources,
    **dict.fromkeys(
        (f"openassent_analysis.addresses:{name}" for name in ("_in_data", "_exported", "_of_instance")),
        _addresses,
    ),
    "openassent_analysis.examine:_examine_addresses": _addresses,
    "openassent_analysis.libraries:newest_is_outdated": _library,
    "openassent_analysis.manifests:_rule_of": _library,
    "openassent_analysis.examine:_examine_manifest": _manifests,
    "openassent_analysis.examine:_manifest_matches": _manifests,
    "openassent_analysis.examine:examine": _manifests,
    "openassent_analysis.examine:_examine_uses": _uses,
    "openassent_analysis.files:check_copy": _check_copy,
    "openassent_analysis.loading:_list_of": lambda text: [loading._list_of(it, "x") for it in _sources(text)],
    "openassent_analysis.loading:_at": lambda text: loading._at(next(_sources(text)), text),
    "openassent_analysis.sources:Source._vendor_of_package": _read_sources,
    "openassent_analysis.sources:Source.inline_package": _read_sources,
    "openassent_analysis.values:_property": _fold,
    "openassent_analysis.templates:read_template": _read_templates,
    **dict.fromkeys(
        (
            f"openassent_analysis.links:Links.{name}"
            for name in ("add", "frontier", "is_read", "resolve", "use", "verdict")
        ),
        _link,
    ),
    **dict.fromkeys((f"openassent_analysis.prose:Content.{name}" for name in ("may_use", "used_in")), _content),
    **dict.fromkeys((f"openassent_analysis.sites:Sites.{name}" for name in ("add", "runs")), _site),
    "openassent_analysis.identities:covers": lambda text: covers(f"{text}/a.js", {text}, text, asks_for_consent=False),
    "scan_execution.identities:Sight.covers": lambda text: Sight("p", text, set(), set(), False).covers(f"{text}/a.js"),
    "openassent_analysis.unknown:may_load_unknown": (
        lambda text: unknown.may_load_unknown(catalogue(), f"<script {text}"),
        FILE,
    ),
    "openassent_analysis.unknown:unknown_host": lambda text: unknown.unknown_host(catalogue(), f"//{text}"),
    "openassent_analysis.inventory.listing:Listing.take": _listed,
    "openassent_analysis.inventory.listing:Listing._take_signs": _listed,
    "openassent_analysis.inventory.listing:Listing.leave_out": _listed,
    "openassent_analysis.inventory.manifests:parts_of": _inventory,
    "openassent_analysis.inventory.manifests:_table": _inventory,
    "openassent_analysis.inventory.technologies:Technologies.framework_of": lambda text: technologies().framework_of(
        "npm", text
    ),
    "openassent_analysis.inventory.technologies:Technologies.language_of": lambda text: technologies().language_of(
        text
    ),
    "openassent_analysis.inventory.technologies:Technologies.signs_of": lambda text: [*technologies().signs_of(text)],
    "scan_execution.omissions:failure": lambda text: failure(workspace.ArchiveTooLarge("archive_bytes"), text),
    "scan_execution.workspace:unpack": _unpack,
    "scan_execution.workspace:_Unpacking._read_extended": (_read_extended, 65_536),
    "scan_execution.workspace:_Unpacking._refusal": _refuse_entry,
    "scan_execution.workspace:_Unpacking._take_entry": _refuse_entry,
    "system.documents:_answer": documents.list_for_agents,
}


def calls(function: TextFunction) -> list[Call] | None:
    """Returns calls that pass a text as all text arguments, and as each of them. None if it needs an adapter."""
    others: dict[str, Any] = {}
    texts: dict[str, type] = {}
    rest: list[type] = []
    if function.owner is not None:
        return None
    for parameter in signature(function.function).parameters.values():
        kind = bytes if parameter.annotation in (bytes, "bytes") else str
        if parameter.name in function.texts:
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest.append(kind)
            else:
                texts[parameter.name] = kind
        elif parameter.default is parameter.empty and parameter.kind not in {
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        }:
            value = _plain_value(parameter.annotation)
            if value is None:
                return None
            others[parameter.name] = value

    def given(kind: type, text: str) -> Any:
        return as_bytes(text) if kind is bytes else text

    def call(text: str, only: str | None = None) -> None:
        shown = {name: given(kind, text if only in {None, name} else "a") for name, kind in texts.items()}
        consume(function.function(*(given(kind, text) for kind in rest), **shown, **others))

    if len(texts) < 2:
        return [call]
    return [call, *(lambda text, name=name: call(text, name) for name in texts)]  # type: ignore[misc]


def consume(result: object) -> None:
    if isinstance(result, Iterator):
        for _ in result:
            pass
    elif isinstance(result, typing.Coroutine):
        result.close()


def _plain_value(hint: Any) -> Any:
    """Returns a simple value for an argument that isn't text, or None if its type has none."""
    kind = typing.get_origin(hint) or hint
    values: Iterable[tuple[Any, Any]] = (
        (int, 1), (float, 1.0), (bool, True), (dict, {}), (Mapping, {}), (list, []), (tuple, ()), (Sequence, ()),
        (Iterable, ()),
    )  # fmt: skip
    return next((value for known, value in values if kind is known), None)
