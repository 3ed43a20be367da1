"""Response models of a scan's inventory."""

from pydantic import Field

from controlplane.platform.http.envelope import Wire


class InventoryLanguage(Wire):
    """A language of the repository."""

    name: str = Field(description="The language's name.", examples=["TypeScript"])
    files: int = Field(description="The number of its files.", ge=1, examples=[310])
    bytes: int = Field(description="The total size of its files.", ge=0, examples=[912345])


class InventoryTechnology(Wire):
    """A framework or a package manager that the repository uses."""

    id: str = Field(description="The ID in the service's list.", examples=["nextjs"])
    name: str = Field(description="The name.", examples=["Next.js"])
    version: str | None = Field(
        description="The version as a manifest names it, which may be a range. Null if none does.", examples=["^15.3.0"]
    )
    path: str = Field(
        description="The file that shows it, relative to the repository's root. If there are several, the one nearest "
        "to the root.",
        examples=["apps/web/package.json"],
    )


class InventoryPackage(Wire):
    """A package of a vendor in a manifest of the repository."""

    name: str = Field(description="The package's name.", examples=["posthog-js"])
    version: str | None = Field(
        description="The version as the manifest names it, which may be a range. Null if it names none.",
        examples=["^1.2.0"],
    )
    path: str = Field(
        description="The manifest, relative to the repository's root.", examples=["apps/web/package.json"]
    )


class InventoryVendor(Wire):
    """A third party whose code the repository uses."""

    id: str = Field(description="The vendor's ID in the service's catalog.", examples=["posthog"])
    name: str = Field(description="The vendor's name.", examples=["PostHog"])
    category: str = Field(description="What the vendor's code is for.", examples=["analytics"])
    packages: list[InventoryPackage] = Field(description="Up to three of its packages that manifests name.")
    hosts: list[str] = Field(
        description="Up to three hosts that the code loads it from. Empty unless `access` is `full`.",
        examples=[["eu.posthog.com"]],
    )
    loading_files: int | None = Field(
        description="The number of analyzed files that load it, whether or not they wait for consent. Null until the "
        "stage `analyze` is completed, unless `access` is `full`, and for kinds of vendors that the analysis doesn't "
        "look for, such as payment providers.",
        ge=0,
        examples=[2],
    )

    ungated_files: int | None = Field(
        description="The number of those files that load it without waiting for consent. Null whenever `loadingFiles` "
        "is null.",
        ge=0,
        examples=[1],
    )


class ScanInventory(Wire):
    """The contents of a scanned repository: its languages, frameworks, package managers, and vendors."""

    files: int = Field(description="The number of files in the scanned folder.", ge=0, examples=[412])
    languages: list[InventoryLanguage] = Field(
        description="The programming and template languages, those with the most files first. Counts all files except "
        "vendored and generated ones, also those in languages that aren't analyzed."
    )
    frameworks: list[InventoryTechnology] = Field(description="The frameworks, by name.")
    package_managers: list[InventoryTechnology] = Field(description="The package managers, by name.")
    vendors: list[InventoryVendor] = Field(
        description="The third parties that manifests name, in the order of their names. If the scan's `access` is "
        "`full`, also those that only the code loads, because they can reveal findings."
    )
    truncated: bool = Field(
        description="Whether the repository has more manifests or vendors than an inventory lists.", examples=[False]
    )
