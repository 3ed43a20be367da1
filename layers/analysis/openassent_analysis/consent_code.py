"""Code that uses the consent library c15t, for people to paste into their project."""

from collections.abc import Iterable


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
