"""The code that installs the consent library c15t for a project's consent instance.

Packages and components are those of the fixes that scans offer (`openassent_analysis.fixes`); a test compares them.
"""

from typing import NamedTuple

from dashboard import consent_code

VERSION = "2.2"
_CATEGORIES = "['necessary', 'measurement', 'marketing']"


class Snippet(NamedTuple):
    """Code for a framework, and the command that installs its package."""

    framework: str
    install: str
    code: str


def list_snippets(runtime_url: str | None) -> list[Snippet]:
    """Returns the snippets. With the instance's address, the choices of visitors are also recorded there."""
    mode = ["mode: 'hosted',", f"backendURL: '{runtime_url}',"] if runtime_url else ["mode: 'offline',"]
    options = [*mode, f"consentCategories: {_CATEGORIES},"]
    return [
        _snippet("Next.js", "@c15t/nextjs", consent_code.provider("@c15t/nextjs", options)),
        _snippet("React", "@c15t/react", consent_code.provider("@c15t/react", options)),
        _snippet("Any other framework", "c15t", consent_code.runtime(options)),
    ]


def _snippet(framework: str, package: str, code: str) -> Snippet:
    return Snippet(framework, f"npm install {package}@^{VERSION}", code)
