"""Code that loads a vendor only after consent, to paste into the project that a finding is about.

It fits the project: it uses the project's consent manager, or without one c15t if the project has a build, or else the
vendor's own consent API. All of the code is ours: nothing in it comes from the repository.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from openassent_analysis.catalogue import Vendor, catalogue
from openassent_analysis.findings import Finding
from openassent_analysis.inventory.stocktaking import Inventory
from openassent_analysis.reading import load_yaml

FIXES: Final = Path(__file__).with_name("resources") / "fixes.yaml"

# The category of findings about loading a vendor.
_LOADS: Final = "trackers"
_REACT: Final = frozenset({"react", "create-react-app", "gatsby", "remix", "react-router", "tanstack-start"})
_APPS: Final = frozenset({"react-native", "expo"})
_NPM: Final = frozenset({"npm", "yarn", "yarn-classic", "pnpm", "bun"})
_BUILT: Final = frozenset({".js", ".jsx", ".mjs", ".ts", ".tsx", ".mts", ".vue", ".svelte", ".astro"})


class Edit(NamedTuple):
    """A change of whole lines of a file.

    before: the lines from `start_line` as they are in the file, without the last line break. after: what replaces them.
    A new file has line 1 and an empty `before`.
    """

    path: str
    start_line: int
    before: str
    after: str

    def as_dict(self) -> dict[str, Any]:
        """Returns the edit for JSON, with keys in camelCase."""
        return {"path": self.path, "startLine": self.start_line, "before": self.before, "after": self.after}


class Fix(NamedTuple):
    """A fix of a finding: what it does, the packages that it needs, and edits of the project's files.

    code: to paste where no edit is safe, in `language`. May be empty if there are edits.
    """

    summary: str
    language: str
    code: str
    packages: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Returns the fix for JSON, with keys in camelCase."""
        return self._asdict() | {"edits": [edit.as_dict() for edit in self.edits]}


@dataclass(frozen=True, slots=True)
class Project:
    """The facts that decide which code fits: ids of frameworks and package managers, and of the vendors in use."""

    technologies: frozenset[str] = frozenset()
    vendors: frozenset[str] = frozenset()

    @classmethod
    def of(cls, inventory: Inventory) -> "Project":
        found = (*inventory.frameworks, *inventory.package_managers)
        return cls(frozenset(it.id for it in found), frozenset(it.id for it in inventory.vendors))


def fix_for(finding: Finding, project: Project) -> Fix | None:
    """Returns the code that fixes the finding, or None if no code fits every project."""
    if finding.category != _LOADS or finding.vendor_id is None:
        return None
    vendor, path = catalogue().vendors[finding.vendor_id], PurePosixPath(finding.location.path)
    known = _known()
    if vendor.id in known["embeds"] and path.suffix not in {".jsx", ".tsx"}:
        return Fix(f"Embed the player of {vendor.name} without cookies.", "html", known["embeds"][vendor.id].strip())
    if manager := _manager(project.vendors):
        return _with_manager(manager, vendor)
    built = path.suffix in _BUILT and not project.technologies.isdisjoint(_NPM)
    if vendor.id in known["options"] and (not built or project.technologies & _APPS):
        return _with_options(known["options"][vendor.id], vendor)
    if project.technologies & _APPS:
        return None
    if built:
        return _with_c15t(vendor, project.technologies)
    return _with_api(vendor)


def _manager(vendors: Collection[str]) -> Mapping[str, Any] | None:
    return next((it for it in _known()["managers"] if it["vendor"] in vendors), None)


def _with_manager(manager: Mapping[str, Any], vendor: Vendor) -> Fix:
    purpose = manager["purposes"].get(vendor.category, manager["otherwise"])
    tag = manager["tag"].replace("{PURPOSE}", purpose)
    return Fix(
        f"{manager['name']} starts the blocked tag once the visitor has agreed.",
        "html",
        f'<script {tag}\n  src="https://{_host(vendor)}/…"></script>\n'
        f"<!-- For an inline script: the same attributes on its <script> element. -->",
    )


def _with_options(option: Mapping[str, str], vendor: Vendor) -> Fix:
    code = f"{option['start']}\n\n// When the visitor agrees, and on later visits if the stored choice says so:\n"
    return Fix(f"{vendor.name} waits until the visitor has agreed.", "js", code + option["agreed"])


def consent_library_version() -> str:
    """Returns the version of c15t that the fixes were checked with."""
    return str(_known()["c15t"]["checked"])


def _with_c15t(vendor: Vendor, technologies: Collection[str]) -> Fix:
    c15t = _known()["c15t"]
    helper = c15t["vendors"].get(vendor.id)
    category = helper["category"] if helper else c15t["categories"].get(vendor.category, c15t["otherwise"])
    script = (
        helper["call"]
        if helper
        else f"{{ id: '{vendor.id}', src: 'https://{_host(vendor)}/…', category: '{category}' }}"
    )
    imports = [f"import {{ {script.partition('(')[0]} }} from '@c15t/scripts/{helper['module']}';"] if helper else []
    options = [
        "mode: 'offline', // or 'hosted' with a backendURL, which also keeps a record of the choices",
        f"consentCategories: ['necessary', '{category}'],",
        f"scripts: [{script}],",
    ]
    if "nextjs" in technologies:
        package, language, code = "@c15t/nextjs", "tsx", provider("@c15t/nextjs", options, imports)
    elif _REACT & set(technologies):
        package, language, code = "@c15t/react", "tsx", provider("@c15t/react", options, imports)
    else:
        package, language, code = "c15t", "ts", runtime(options, imports)
    packages = (f"{package}@^{c15t['checked']}", *((f"@c15t/scripts@^{c15t['checked']}",) if helper else ()))
    summary = f"c15t {c15t['checked']} loads {vendor.name} after consent. Remove the code that loads it today."
    return Fix(summary, language, code, packages)


def _with_api(vendor: Vendor) -> Fix:
    api = next((it for it in _known()["apis"] if vendor.id in it["vendors"]), None)
    agreed = "When the visitor agrees, and on later visits if the stored choice says so:"
    if api is not None:
        code = f"{api['before']}\n<script>\n  // {agreed}\n  {api['agreed']}\n</script>"
        return Fix(f"{vendor.name} waits for consent through {api['name']}.", "html", code)
    name = "load" + "".join(part.capitalize() for part in vendor.id.split("-"))
    code = "\n".join([
        "<script>",
        f"  // {agreed} {name}();",
        f"  function {name}() {{",
        "    const script = document.createElement('script');",
        f"    script.src = 'https://{_host(vendor)}/…';",
        "    script.async = true;",
        "    document.head.append(script);",
        "  }",
        "</script>",
    ])  # fmt: skip
    return Fix(f"Your banner loads {vendor.name} once the visitor has agreed.", "html", code)


def _host(vendor: Vendor) -> str:
    return vendor.domains[0].partition("/")[0]


@cache
def _known() -> Mapping[str, Any]:
    found: Mapping[str, Any] = load_yaml(FIXES)
    return found


def provider(package: str, options: Iterable[str], imports: Iterable[str] = ()) -> str:
    """Returns a React component around the application.

    package: c15t's package for the framework. options, imports: further lines of code.
    """
    return "\n".join([
        *(["'use client';", ""] if package == "@c15t/nextjs" else []),
        f"import {{ ConsentBanner, ConsentDialog, ConsentManagerProvider }} from '{package}';",
        *imports,
        "import type { ReactNode } from 'react';",
        "",
        "// Wrap the application in it.",
        "export function Consent({ children }: { children: ReactNode }) {",
        "  return (",
        "    <ConsentManagerProvider",
        "      options={{",
        *(f"        {line}" for line in options),
        "      }}",
        "    >",
        "      <ConsentBanner />",
        "      <ConsentDialog />",
        "      {children}",
        "    </ConsentManagerProvider>",
        "  );",
        "}",
    ])  # fmt: skip


def runtime(options: Iterable[str], imports: Iterable[str] = ()) -> str:
    """Returns the start of c15t without a framework. options, imports: further lines of code."""
    return "\n".join([
        "import { getOrCreateConsentRuntime } from 'c15t';",
        *imports,
        "",
        "const { consentStore } = getOrCreateConsentRuntime({",
        *(f"  {line}" for line in options),
        "});",
        "",
        "// Your banner's buttons:",
        "export const accept = () => consentStore.getState().saveConsents('all');",
        "export const refuse = () => consentStore.getState().saveConsents('necessary');",
    ])  # fmt: skip
