"""Routes of `code_audit` that link repositories to projects, and disconnect repositories."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path

from code_audit.link_schemas import DeletedLink, DisconnectedRepository, LinkCreate, LinkUpdate
from code_audit.repository_schemas import LinkedProject
from controlplane.access.access import Access, Requires, Resource
from controlplane.access.idempotency import IdempotencyKey, idempotent
from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Answer, Page
from controlplane.platform.http.pagination import Cursor, CursorCodec, Limit
from controlplane.platform.http.route import refuses
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem

router = ControlRouter(tags=["Code audit"])

REPOSITORY = Resource("repositoryId", RepositoryId, keys.repository, RepositoryItem.from_item)

ReadsRepository = Annotated[Access[RepositoryItem], Requires("code-audit.read", resource=REPOSITORY)]
ChangesRepository = Annotated[
    Access[RepositoryItem], Requires("repositories.write", role="admin", resource=REPOSITORY, user_token=True)
]
LinkedProjectId = Annotated[
    str,
    Path(
        alias="projectId",
        description="The ID of a linked project.",
        examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    ),
]


@router.get("/v1/code-audit/repositories/{repositoryId}/links", summary="List the links of a repository")
async def list_links(access: ReadsRepository, limit: Limit = 50, cursor: Cursor = None) -> Page[LinkedProject]:
    """Lists the projects that the repository is linked to, in the order in which the projects were created."""
    repository = access.resource
    codec = CursorCodec(cursor, "listLinks", repository.repository_id)
    projects_of = repositories.find_linked_projects([repository])
    existing = (it for it in repository.links if it.project_id in projects_of)
    page, following = codec.cut(existing, limit, lambda it: it.project_id)
    return Page([LinkedProject.of(repository, link, projects_of[link.project_id]) for link in page], following)


@router.post(
    "/v1/code-audit/repositories/{repositoryId}/links", summary="Link a project to a repository", status_code=201
)
@refuses(repositories.ProjectGone, repositories.AlreadyLinked, repositories.LinkLimitReached)
async def create_link(
    access: ChangesRepository, body: LinkCreate, idempotency_key: IdempotencyKey = None
) -> Answer[LinkedProject]:
    """Links a project of the same organization to the repository, so that it can be scanned for the project.

    A repository can have up to 10 linked projects, each with a branch and a folder of its own.
    """
    repository = access.resource

    def create(legs: Mapping[str, Leg]) -> LinkedProject:
        project = _get_project(repository, body.project_id)
        link = Link(**body.model_dump(exclude={"project_id"}), project_id=project.project_id)
        return LinkedProject.of(repositories.create_link(repository, link, access.user_id, legs), link, project)

    return idempotent(
        access,
        "createLink",
        idempotency_key,
        {"repositoryId": repository.repository_id, **body.model_dump(mode="json", by_alias=True)},
        create,
    )


@router.patch("/v1/code-audit/repositories/{repositoryId}/links/{projectId}", summary="Change a link")
@refuses(repositories.ProjectGone, repositories.NotLinked)
async def update_link(access: ChangesRepository, project_id: LinkedProjectId, body: LinkUpdate) -> LinkedProject:
    """Changes what is scanned for the project, and when. Omitted fields keep their values.

    The next scan uses the new branch and folder. A scan that is running isn't affected.
    """
    settings = body.settings
    project = _get_project(access.resource, project_id)
    updated = repositories.update_link(access.resource, project.project_id, settings, access.user_id)
    return LinkedProject.of(updated, next(it for it in updated.links if it.project_id == project.project_id), project)


@router.delete("/v1/code-audit/repositories/{repositoryId}/links/{projectId}", summary="Unlink a project")
@refuses(repositories.NotLinked)
async def delete_link(access: ChangesRepository, project_id: LinkedProjectId) -> DeletedLink:
    """Unlinks a project from the repository. The project's scans and findings are kept.

    A repository without linked projects can't be scanned.
    """
    parsed = known(ProjectId.parse(project_id), repositories.NotLinked)
    repositories.unlink_project(access.resource.repository_id, parsed, access.user_id)
    return DeletedLink(deleted=True, project_id=parsed)


@router.delete("/v1/code-audit/repositories/{repositoryId}", summary="Disconnect a repository")
async def disconnect_repository(access: ChangesRepository) -> DisconnectedRepository:
    """Disconnects the repository from the organization, and ends its running scan.

    Its scans, their findings, and its inbox items are deleted. If you connect it again, it is a new repository. Nothing
    changes on the code host: remove the app's access there.
    """
    repository = repositories.disconnect_repository(access.resource.repository_id, access.user_id)
    return DisconnectedRepository(deleted=True, repository_id=repository.repository_id)


def _get_project(repository: RepositoryItem, project_id: str) -> ProjectItem:
    """Returns the project of the repository's organization. Raises ProjectGone."""
    parsed = ProjectId.parse_own(repository.organization_id, project_id, repositories.ProjectGone)
    try:
        return projects.get_project(parsed)
    except projects.UnknownProject:
        raise repositories.ProjectGone from None
