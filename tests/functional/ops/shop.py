"""An organization with one of everything that commands name."""

from dataclasses import dataclass

from controlplane.access import sign_in
from controlplane.access.sign_in import Claims
from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.feedback import store as feedback
from controlplane.findings import issue_attempts
from controlplane.platform.core.ids import ProjectId
from controlplane.projects import changes as project_changes
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from tests.functional.projects.builders import make_project
from tests.support.world import Company, World

ISSUER = "https://issuer.example"


def identity(subject: str, email: str = "ada@example.com") -> Claims:
    return Claims(issuer=ISSUER, subject=subject, email=email, email_verified=True, name="Ada", image=None)


@dataclass(frozen=True)
class Shop:
    """names: what commands are given, such as the ID of the `project`."""

    company: Company
    names: dict[str, str]

    @classmethod
    def create(cls, world: World) -> "Shop":
        company = world.company(owner=world.person("ada@example.com"))
        organization_id, owner = company.organization_id, company.owner
        sign_in.sign_in(identity("old"))
        admin = world.member(company, "admin", world.person("grace@example.com", "Grace Hopper"))
        stranger = world.person("mary@example.com", "Mary")
        world.key(company, "deploy")
        world.credits(company, 120)
        billing.enable_top_up(organization_id, threshold=10, amount=100, monthly_limit=1)
        repository = world.connected_repository(company, name="shop")
        link = repository.links[0]._replace(schedule="daily", scan_on_push=True, failure_threshold="P0")
        repositories.link_project(repository.repository_id, link)
        project = projects.get_project(ProjectId.stored(link.project_id))
        change = project_changes.ProjectChange(added_websites=[Address("localhost:3000", "development")])
        project_changes.update_project(project, change, may_remove_websites=False)
        website = project.websites[0]
        gone = make_project(company, "Gone")
        projects.delete_project(gone)
        item = world.finding(company, repository)
        attempt, _ = issue_attempts.begin_attempt(item.item_id, owner.user_id)
        report = {"category": "bug", "message": "It fails.\nAlways.", "surface": "cli", "reproduction": "a\nb"}
        names = {
            "org": company.slug,
            "organization": organization_id,
            "owner": owner.user_id,
            "admin": admin.user_id,
            "stranger": stranger.user_id,
            "key": api_keys.list_keys(organization_id, 1, None).items[0].key_id,
            "repository": repository.repository_id,
            "project": project.project_id,
            "foreign": make_project(world.company()).project_id,
            "gone": gone.project_id,
            "website": website.website_id,
            "item": item.item_id,
            "marker": attempt.marker,
            "quiet": world.finding(company).item_id,
            "report": feedback.submit_report(owner.user_id, report).reference,
        }
        return cls(company, names)
