"""Creates the users, organizations, and credentials that tests need, through the store."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.code_host import repositories
from controlplane.code_host.items import HostedRepository, Link, RepositoryItem
from controlplane.findings import inbox, publications
from controlplane.findings.discoveries import Discovery
from controlplane.findings.items import Evidence, InboxItem
from controlplane.organizations import invitations
from controlplane.organizations import store as organizations
from controlplane.organizations.items import InvitationItem
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.people.users import UserItem
from controlplane.platform.core import clock
from controlplane.platform.core.roles import Role
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Put, Update, table
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from tests.support.table import PREPARED

_NUMBERS = count(1)
ALL_SCOPES = sorted(SCOPES)
# The fields of an API key without limits in a response.
UNLIMITED = {
    "description": None,
    "scopes": [*API_KEY_SCOPES],
    "projectIds": None,
    "allowedIps": None,
    "expiresAt": None,
}


@dataclass
class Person:
    """A user with an account and a token with every scope."""

    user_id: str
    email: str
    name: str
    token: str


@dataclass
class Company:
    """An organization and its owner."""

    organization_id: str
    slug: str
    name: str
    owner: Person


class World:
    """Creates test data. Every call creates a new item."""

    def person(self, email: str | None = None, name: str = "Ada Lovelace", scopes: list[str] | None = None) -> Person:
        number = next(_NUMBERS)
        profile = users.create_user(email or f"person{number}@example.com", name)
        token = self.token(profile.user_id, scopes)
        return Person(profile.user_id, profile.email, profile.name, token)

    def token(self, user_id: str, scopes: list[str] | None = None, lifetime_seconds: int = 3600) -> str:
        """Creates a user token, by default with every scope."""
        return user_tokens.create_token(user_id, ALL_SCOPES if scopes is None else scopes, lifetime_seconds)

    def company(self, plan: str = "pro", name: str = "Acme", owner: Person | None = None) -> Company:
        owner = owner or self.person()
        slug = f"acme-{next(_NUMBERS)}"
        made = organizations.create_organization(name, slug, owner.user_id)
        if plan != "free":
            billing.change_plan(made.organization_id, plan)
        return Company(made.organization_id, slug, name, owner)

    def member(self, company: Company, role: Role = "member", person: Person | None = None) -> Person:
        """Adds a user, by default a new one, to the organization with that role."""
        person = person or self.person()
        profile = get_profile(person.user_id)
        membership = organizations.Membership(
            organization_id=company.organization_id, slug=company.slug, name=company.name, role=role
        )
        for put in organizations.membership_legs(membership, profile):
            table.put(put, PREPARED)
        if role == "owner":
            organization = table.get(keys.organization(company.organization_id))
            assert organization is not None
            table.put(Put({**organization, "owners": organization["owners"] + 1}), PREPARED)
        return person

    def clear_default(self, person: Person) -> None:
        """Clears the saved organization."""
        table.update(
            Update(keys.user(person.user_id), "SET #savedOrganizationId = :none", None, {"none": None}), PREPARED
        )

    def leave(self, company: Company, person: Person) -> None:
        """Deletes a membership directly in the table, without the API."""
        table.delete(Delete(keys.member(company.organization_id, person.user_id)), PREPARED)
        table.delete(Delete(keys.membership(person.user_id, company.organization_id)), PREPARED)

    def key(self, company: Company, name: str = "deploy") -> str:
        """Creates an API key and returns its secret."""
        return api_keys.create_key(company.organization_id, name, company.owner.user_id, "test").secret

    def credits(self, company: Company, amount: int) -> None:
        billing.add_credits(company.organization_id, amount)

    def invitation(self, company: Company, email: str, role: Role = "member") -> InvitationItem:
        """Invites the address in the owner's name. Raises what `create_invitation` does."""
        return invitations.create_invitation(
            company.organization_id,
            email,
            role,
            inviter_id=company.owner.user_id,
            limits=invitations.Limits(100, 20),
            extra_legs={},
        )

    def connected_repository(
        self,
        company: Company,
        *,
        linked: bool = True,
        owner: str = "acme",
        name: str | None = None,
        installation_id: int = 4711,
    ) -> RepositoryItem:
        """Connects a repository on the code host and, if `linked`, links it to a new project."""
        name = name or f"shop-{next(_NUMBERS)}"
        hosted = hosted_repository(name, owner, installation_id=installation_id)
        made = repositories.connect_repository(company.organization_id, hosted)
        if not linked:
            return made
        project = projects.create_project(
            company.organization_id,
            name,
            region="eu-central",
            addresses=[Address(f"{name}.example.com", "domain")],
            branding="assent",
        )
        return repositories.link_project(made.repository_id, Link(project.project_id, None, None, False))

    def discovery(self, company: Company, repository: RepositoryItem | None = None, **changes: Any) -> Discovery:
        """Returns a new discovery: in code or, if no repository is given, from an advisory."""
        number = next(_NUMBERS)
        made = Discovery(
            organization_id=company.organization_id,
            source="advisory",
            identity=(str(number),),
            title=f"Finding {number}",
            observed_at=clock.timestamp(),
            summary="It should not be so.",
            priority="P2",
        )
        if repository is not None:
            place = f"{repository.html_url}/blob/{'1f0c2b9e' * 5}/src/index.html#L12-L14"
            made = made._replace(
                source="code-audit",
                repository_id=repository.repository_id,
                repository_name=repository.name,
                project_id=repository.links[0].project_id if repository.links else None,
                rule_id="tracker-before-consent",
                description="Visitors are tracked before they could say no.",
                remediation="Load the tag once consent is given.",
                references=("https://example.com/consent",),
                evidence=(
                    Evidence(
                        "src/index.html, line 12",
                        place,
                        "src/index.html",
                        start_line=12,
                        end_line=14,
                        snippet='<script src="a.js"></script>',
                    ),
                ),
            )
        return made._replace(**changes)

    def finding(self, company: Company, repository: RepositoryItem | None = None, **changes: Any) -> InboxItem:
        """Publishes a finding as its source does, and returns the inbox item."""
        return publish_finding(self.discovery(company, repository, **changes))


def publish_finding(discovery: Discovery) -> InboxItem:
    """Publishes a finding as the workers do, and returns its item."""
    publications.publish_findings([discovery])
    return inbox.get_item(discovery.item_id)


def hosted_repository(name: str, owner: str = "acme", **fields: Any) -> HostedRepository:
    """Returns a repository as the code host describes it."""
    usual = {"installation_id": 4711, "default_branch": "main", "visibility": "private"}
    return HostedRepository(
        owner=owner, name=name, html_url=f"https://github.com/{owner}/{name}", **{**usual, **fields}
    )


def get_profile(reference: str) -> UserItem:
    """Returns the profile of the account with this id or address, which must exist."""
    profile = users.find_user_by_email(reference) if "@" in reference else users.find_user(reference)
    assert profile is not None
    return profile


def table_dump() -> list[dict[str, Any]]:
    """Returns all items of the table, sorted by key, so that tests can check that nothing was written.

    Omits the rate limit counters of users and organizations, and the records of refusals, which rejected requests
    write too.
    """
    items = table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]
    items = [item for item in items if not item["pk"]["S"].startswith(("RATE#", "REFUSALS#"))]
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def uncounted() -> list[dict[str, Any]]:
    """Returns the dump without what counts and dates requests, which rejected ones change too."""
    counters = {"hits", "win", "usedHour", "lastUsedAt"}
    shown = [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")]
    return [{name: value for name, value in item.items() if name not in counters} for item in shown]
