"""c15t set up for a framework: a new file, and the edits that let it start the vendor instead of the project's code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from openassent_analysis.catalogue import Vendor
from openassent_analysis.edits import Change, Edit, Fix, Unsafe, edits_of, insertion, removal, waiting_call
from openassent_analysis.places import BODY, CHILD, IMPORT, MAX_TEXT, STATEMENT, UNUSED, VALUE, Place

_MODE: Final = ("mode: 'offline'", "or 'hosted' with a backendURL, which also keeps a record of the choices")
_REACT: Final = frozenset({"react", "create-react-app", "gatsby", "remix", "react-router", "tanstack-start"})
_TYPED: Final = frozenset({".ts", ".tsx", ".mts", ".vue", ".svelte", ".astro"})
# Folders whose files are pages.
_PAGES: Final = frozenset({"pages", "routes"})
_ENVIRONMENT: Final = re.compile(r"\{(process\.env\.\w{1,80}|import\.meta\.env\.\w{1,80})!?\}")
_INLINE: Final = re.compile(r">\s*\{`([^`$]+)`\}\s*</|__html:\s*`([^`$]+)`")
_HELPER: Final = re.compile(r"\b\w{1,60}(?=\()")


class _Script(NamedTuple):
    """The vendor as one of c15t's scripts. exact: it has the id or the code of the project."""

    code: str
    category: str
    exact: bool
    module: str = ""

    @property
    def imports(self) -> list[str]:
        name = _HELPER.search(self.code) if self.module else None
        return [f"import {{ {name[0]} }} from '@c15t/scripts/{self.module}';"] if name else []


def set_up(
    vendor: Vendor,
    path: PurePosixPath,
    places: Sequence[Place],
    technologies: Collection[str],
    known: Mapping[str, Any],
    *,
    exists: bool,
    taken: Collection[str],
) -> Fix:
    """Returns a fix with c15t.

    exists: the project has it, so the fix says what to add instead of setting it up. taken: paths of its files.
    """
    script, version = _script(vendor, places, known), known["checked"]
    calls = [it for it in places if it.kind == STATEMENT and vendor.id not in known["waits"]]
    if exists:
        return _added(vendor, script, calls)
    framework = _framework(technologies)
    packages = [f"{framework}@^{version}"]
    if calls:
        packages += [] if framework == "c15t" else [f"c15t@^{version}"]
    elif script.module:
        packages.append(f"@c15t/scripts@^{version}")
    typed = path.suffix in _TYPED
    code = _code(framework, script, typed=typed, starts=bool(calls))
    summary = f"c15t {version} starts {vendor.name} after consent."
    try:
        edits = _edits(path, places, calls, script, code, is_component=framework != "c15t")
        if edits[0].path in taken:
            raise Unsafe  # noqa: TRY301
    except Unsafe:
        language = ("tsx" if typed else "jsx") if framework != "c15t" else ("ts" if typed else "js")
        summary += " Call what starts it today in `whenAllowed`." if calls else " Remove the code that loads it today."
        return Fix(summary, language, code, tuple(packages))
    if calls and framework != "c15t":
        summary += " Render `<Consent />` once, in the root of the application."
    elif calls:
        summary += " Your banner's buttons call `accept` and `refuse`."
    return Fix(summary, path.suffix.removeprefix("."), "", tuple(packages), edits)


def _framework(technologies: Collection[str]) -> str:
    if "nextjs" in technologies:
        return "@c15t/nextjs"
    return "@c15t/react" if _REACT & {*technologies} else "c15t"


def _added(vendor: Vendor, script: _Script, calls: Sequence[Place]) -> Fix:
    code = script.code
    if calls:
        call = "\n".join(f"  {line}" for line in calls[0].code.split("\n"))
        code = (
            f"{{ id: '{vendor.id}', category: '{script.category}', callbackOnly: true, onLoad: () => {{\n{call}\n}} }}"
        )
    imports = "" if calls else "\n".join((*script.imports, ""))
    summary = f"Add {vendor.name} to `scripts` in the options of the project's c15t, and remove what loads it today."
    return Fix(summary, "js", f"{imports}// in scripts:\n{code},")


def _script(vendor: Vendor, places: Sequence[Place], known: Mapping[str, Any]) -> _Script:
    helper = known["vendors"].get(vendor.id)
    elements = [it for it in places if it.kind in {CHILD, VALUE} and "noscript" not in it.parts]
    text = "\n".join(place.code for place in places)
    category = helper["category"] if helper else known["categories"].get(vendor.category, known["otherwise"])
    if helper and "id" in helper:
        if found := re.search(helper["id"], text):
            return _Script(
                helper["call"].replace("{ID}", next(filter(None, found.groups()))), category, True, helper["module"]
            )
        if found := _ENVIRONMENT.search(text):
            call = helper["call"].replace("'{ID}'", f"{found[1]} ?? ''")
            return _Script(call, category, True, helper["module"])
    if elements and (own := [*_own(vendor, elements, category)]) and len(own) == len(elements):
        return _Script(",\n".join(own), category, True)
    if helper:
        return _Script(helper["call"].replace("{ID}", helper.get("else", "")), category, False, helper["module"])
    return _Script(
        f"{{ id: '{vendor.id}', src: 'THE ADDRESS OF ITS SCRIPT', category: '{category}' }}", category, False
    )


def _own(vendor: Vendor, elements: Iterable[Place], category: str) -> Iterator[str]:
    """Yields the project's own elements as scripts of c15t: their address and data, or their code."""
    for number, element in enumerate(elements, 1):
        name = vendor.id if number == 1 else f"{vendor.id}-{number}"
        source, inline = element.attribute("src"), _INLINE.search(element.code)
        if source and not set(source) & set("{}\n'"):
            data = {key[1:]: element.attribute(key[1:]) for key in element.parts if key.startswith("@data-")}
            if any(set(value) & set("{}\n'") for value in data.values()):
                return
            attributes = ", ".join(f"'{key}': '{value}'" for key, value in data.items())
            extra = f", attributes: {{ {attributes} }}" if attributes else ""
            yield f"{{ id: '{name}', src: '{source}', category: '{category}'{extra} }}"
        elif inline:
            yield f"{{ id: '{name}', textContent: `{inline[1] or inline[2]}`, category: '{category}' }}"


def _edits(
    path: PurePosixPath,
    places: Sequence[Place],
    calls: Sequence[Place],
    script: _Script,
    code: str,
    *,
    is_component: bool,
) -> tuple[Edit, ...]:
    """Returns the new file and the edits of the vendor's file. Raises Unsafe."""
    imports = [it for it in places if it.kind == IMPORT]
    elements = [it for it in places if it.kind not in {IMPORT, UNUSED, BODY, STATEMENT}]
    if not imports or path.stem == "_document" or bool(elements) == bool(calls):
        raise Unsafe
    if elements:
        if not is_component or not script.exact or any(it.kind not in {CHILD, VALUE} for it in elements):
            raise Unsafe
        changes = [*_mounted(elements, next((it for it in places if it.kind == BODY), None))]
    else:
        before, after = (f"whenAllowed('{script.category}', () => {{",), ("});",)
        changes = [waiting_call(it, before, after) for it in calls]
    folder, module = _folder(path)
    typed = path.suffix in _TYPED
    ending = ("tsx" if typed else "jsx") if is_component else ("ts" if typed else "js")
    statement = f"import {{ {'Consent' if elements else 'whenAllowed'} }} from '{module}';"
    changes += _imported(imports[0], [it for it in places if it.kind == UNUSED] if elements else [], statement)
    edits = (Edit(str(folder / f"consent.{ending}"), 1, "", code), *edits_of(str(path), changes))
    if sum(len(edit.before) + len(edit.after) for edit in edits) > MAX_TEXT:
        raise Unsafe
    return edits


def _mounted(elements: Sequence[Place], body: Place | None) -> Iterator[Change]:
    """Yields the changes that render the component instead of elements. Raises Unsafe."""
    if body is not None:
        end = body.parts["tag"][1]
        start = body.text.rfind("\n", 0, body.start) + 1
        indent = " " * (body.start - start)
        last = body.text.find("\n", end)
        rest = body.text[end : len(body.text) if last < 0 else last].strip()
        yield Change(body, end, end, f"\n{indent}  <Consent />" + (f"\n{indent}  " if rest else ""))
    for element in elements:
        if body is None and element is elements[0]:
            if "head" in element.parts or "noscript" in element.parts:
                raise Unsafe
            yield removal(element, text="<Consent />")
        else:
            yield removal(element, text="" if element.kind == CHILD else "null")


def _imported(first: Place, unused: Sequence[Place], statement: str) -> Iterator[Change]:
    """Yields the changes that import something new, and not what isn't used any more."""
    replaced = next((it for it in unused if (it.line, it.start) == (first.line, first.start)), None)
    if replaced is None:
        yield insertion(first, first.start, statement)
    else:
        yield Change(first, first.start, first.end, statement)
    for place in unused:
        if place is not replaced:
            yield removal(place)


def _folder(path: PurePosixPath) -> tuple[PurePosixPath, str]:
    """Returns the folder of the new file, which isn't one of pages, and the module to import it from."""
    parts = path.parent.parts
    for depth, part in enumerate(parts):
        if part in _PAGES:
            above = len(parts) - depth
            return PurePosixPath(*parts[:depth], "components"), f"{'../' * above}components/consent"
    return path.parent, "./consent"


def _code(framework: str, script: _Script, *, typed: bool, starts: bool) -> str:
    options = [f"consentCategories: ['necessary', '{script.category}'],"]
    if not starts:
        options += ["scripts: [", *(f"  {line}" for line in f"{script.code},".split("\n")), "],"]
    mode, imports = f"{_MODE[0]}, // {_MODE[1]}", [] if starts else script.imports
    starter = [*_when_allowed(typed=typed), ""] if starts else []
    if framework == "c15t":
        return runtime([mode, *options], imports, starter, names=_names(typed=typed and starts))
    if not starts:
        return provider(framework, [mode, *options], imports, wraps=False)
    constant, names = (" as const", " as AllConsentNames[]") if typed else ("", "")
    shared = [
        "const options = {",
        f"  {_MODE[0]}{constant}, // {_MODE[1]}",
        f"  consentCategories: ['necessary', '{script.category}']{names},",
        "};",
        "const { consentStore } = getOrCreateConsentRuntime(options);",
        "",
    ]
    imports = [f"import {_names(typed=typed)} from 'c15t';"]
    return provider(framework, ["...options,"], imports, [*shared, *starter], wraps=False)


def provider(
    package: str, options: Iterable[str], imports: Iterable[str] = (), before: Iterable[str] = (), *, wraps: bool = True
) -> str:
    """Returns a React component with the banner.

    package: c15t's package for the framework. options, imports, before: further lines of code. wraps: whether it is
    around the application. Without, it can be anywhere in it.
    """
    return "\n".join([
        *(["'use client';", ""] if package == "@c15t/nextjs" else []),
        f"import {{ ConsentBanner, ConsentDialog, ConsentManagerProvider }} from '{package}';",
        *imports,
        *(["import type { ReactNode } from 'react';"] if wraps else []),
        "",
        *before,
        "// Wrap the application in it." if wraps else "// Render it once, in the root of the application.",
        f"export function Consent({'{ children }: { children: ReactNode }' if wraps else ''}) {{",
        "  return (",
        "    <ConsentManagerProvider",
        "      options={{",
        *(f"        {line}" for line in options),
        "      }}",
        "    >",
        "      <ConsentBanner />",
        "      <ConsentDialog />",
        *(["      {children}"] if wraps else []),
        "    </ConsentManagerProvider>",
        "  );",
        "}",
    ])  # fmt: skip


def runtime(
    options: Iterable[str],
    imports: Iterable[str] = (),
    after: Iterable[str] = (),
    *,
    names: str = "{ getOrCreateConsentRuntime }",
) -> str:
    """Returns the start of c15t without a framework. options, imports, after: further lines of code."""
    return "\n".join([
        f"import {names} from 'c15t';",
        *imports,
        "",
        "const { consentStore } = getOrCreateConsentRuntime({",
        *(f"  {line}" for line in options),
        "});",
        "",
        *after,
        "// Your banner's buttons:",
        "export const accept = () => consentStore.getState().saveConsents('all');",
        "export const refuse = () => consentStore.getState().saveConsents('necessary');",
    ])  # fmt: skip


def _names(*, typed: bool) -> str:
    return "{ type AllConsentNames, getOrCreateConsentRuntime }" if typed else "{ getOrCreateConsentRuntime }"


def _when_allowed(*, typed: bool) -> list[str]:
    parameters = "category: AllConsentNames, start: () => void" if typed else "category, start"
    return [
        "// Starts something once the visitor has agreed: now, if an earlier choice says so, or later.",
        f"export function whenAllowed({parameters}) {{",
        "  if (consentStore.getState().has(category)) {",
        "    start();",
        "    return;",
        "  }",
        "  const stop = consentStore.subscribe((state) => {",
        "    if (state.has(category)) {",
        "      stop();",
        "      start();",
        "    }",
        "  });",
        "}",
    ]
