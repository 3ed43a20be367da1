"""Request and response models of the links between repositories and projects."""

from typing import Any, Literal, cast

from pydantic import Field, StrictBool

from code_audit.fields import REPOSITORY_ID
from controlplane.code_host.items import DEFAULT_FAILURE_THRESHOLD, LinkSettings
from controlplane.platform.core.naming import Branch, Folder
from controlplane.platform.core.priorities import Priority
from controlplane.platform.core.schedules import Schedule
from controlplane.platform.http.envelope import Changes, Wire
from controlplane.platform.http.fields import ProjectId

_BRANCH: dict[str, Any] = {
    "description": "The branch to scan. Null means the repository's default branch.",
    "examples": ["main"],
}
_FOLDER: dict[str, Any] = {
    "description": "The folder to scan, relative to the repository's root. Null means the whole repository.",
    "examples": ["apps/web"],
}
_PULL_REQUESTS = "Whether pull requests are scanned."
_PUSH = "Whether a push to the production branch starts a scan."
_SCHEDULE: dict[str, Any] = {
    "description": "How often a scan starts by itself. Null means never.",
    "examples": ["daily"],
}
_THRESHOLD = "A new finding of this priority, or of a more urgent one, fails the check of its pull request."


class LinkCreate(Wire):
    """A project to link to a repository."""

    project_id: str = Field(
        description="A project of the repository's organization.",
        min_length=1,
        max_length=100,
        examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    production_branch: Branch | None = Field(None, **_BRANCH)
    root_directory: Folder | None = Field(None, **_FOLDER)
    pull_request_scans_enabled: StrictBool = Field(False, description=_PULL_REQUESTS)
    scan_on_push: StrictBool = Field(False, description=_PUSH)
    schedule: Schedule | None = Field(None, **_SCHEDULE)
    failure_threshold: Priority = Field(DEFAULT_FAILURE_THRESHOLD, description=_THRESHOLD, examples=["P1"])


class LinkUpdate(Changes):
    """Changes to a link. At least one field is required. Omitted fields keep their values."""

    production_branch: Branch | None = Field(None, **_BRANCH)
    root_directory: Folder | None = Field(None, **_FOLDER)
    # A field that can be omitted but not null has a default factory, which the document doesn't show as a value.
    pull_request_scans_enabled: StrictBool = Field(default_factory=bool, description=_PULL_REQUESTS)
    scan_on_push: StrictBool = Field(default_factory=bool, description=_PUSH)
    schedule: Schedule | None = Field(None, **_SCHEDULE)
    failure_threshold: Priority = Field(
        default_factory=lambda: DEFAULT_FAILURE_THRESHOLD, description=_THRESHOLD, examples=["P2"]
    )

    @property
    def settings(self) -> LinkSettings:
        """The fields of the request, without those that were omitted."""
        return cast("LinkSettings", self.model_dump(exclude_unset=True))


class DeletedLink(Wire):
    """The result of unlinking a project."""

    deleted: Literal[True] = Field(description="True: the project was unlinked.")
    project_id: ProjectId


class DisconnectedRepository(Wire):
    """The result of disconnecting a repository."""

    deleted: Literal[True] = Field(description="True: the repository was disconnected.")
    repository_id: str = Field(description="The repository's ID.", examples=[REPOSITORY_ID])
