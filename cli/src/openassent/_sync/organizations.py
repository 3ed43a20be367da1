# Made from _async/organizations.py by `make sdk`: edit that file.
"""Organizations, their people, and what they share; and the caller."""

from datetime import datetime

from openassent._calls import change, create, get, given, path
from openassent._sync._pages import Pages
from openassent._sync._resource import Resource
from openassent.models import (
    ActiveOrganization,
    AuditLogEntry,
    Billing,
    CallingCredential,
    DeletedInvitation,
    DeletedMember,
    Invitation,
    Member,
    Organization,
    OrganizationListItem,
    RevokedSession,
    Session,
    UpdatedMember,
)
from openassent.values import Action, Role


class Organizations(Resource):
    """The caller's organizations."""

    def list(self) -> Pages[OrganizationListItem]:
        """Lists the caller's organizations by slug. An API key has one."""
        return Pages(self._core, "/v1/organizations", OrganizationListItem)

    def create(
        self, *, name: str, slug: str | None = None, idempotency_key: str | None = None, dry_run: bool = False
    ) -> Organization:
        """Creates an organization on the free plan, with the caller as its owner.

        slug: derived from the name by default. Raises Conflict if it is taken; `details["suggestions"]` has others.
        """
        call = create("/v1/organizations", given(name=name, slug=slug), idempotency_key, dry_run=dry_run)
        return self._core.result(call, Organization)

    def get(self, organization_id: str) -> Organization:
        """Returns one of the caller's organizations."""
        return self._core.result(get(path("/v1/organizations/{}", organization_id)), Organization)


class Members(Resource):
    """The members of an organization."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, organization_id: str | None = None
    ) -> Pages[Member]:
        """Lists the organization's members."""
        query = {"limit": limit, "organizationId": self._organization(organization_id)}
        return Pages(self._core, "/v1/members", Member, cursor, query)

    def update(self, member_id: str, *, role: Role, dry_run: bool = False) -> UpdatedMember:
        """Changes a member's role. `updated` is false if the member already had it."""
        call = change("PATCH", path("/v1/members/{}", member_id), {"role": role}, dry_run=dry_run)
        return self._core.result(call, UpdatedMember)

    def delete(self, member_id: str, *, dry_run: bool = False) -> DeletedMember:
        """Removes a member from the organization."""
        call = change("DELETE", path("/v1/members/{}", member_id), dry_run=dry_run)
        return self._core.result(call, DeletedMember)


class Invitations(Resource):
    """Pending invitations to an organization."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, organization_id: str | None = None
    ) -> Pages[Invitation]:
        """Lists the organization's pending invitations, newest first."""
        query = {"limit": limit, "organizationId": self._organization(organization_id)}
        return Pages(self._core, "/v1/invitations", Invitation, cursor, query)

    def create(
        self,
        *,
        email: str,
        role: Role,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Invitation:
        """Invites an email address to the organization, for seven days."""
        organization_id = self._organization(organization_id)
        call = create(
            "/v1/invitations",
            {"email": email, "role": role},
            idempotency_key,
            dry_run=dry_run,
            organizationId=organization_id,
        )
        return self._core.result(call, Invitation)

    def delete(self, invitation_id: str, *, dry_run: bool = False) -> DeletedInvitation:
        """Cancels an invitation."""
        call = change("DELETE", path("/v1/invitations/{}", invitation_id), dry_run=dry_run)
        return self._core.result(call, DeletedInvitation)

    def resend(self, invitation_id: str, *, dry_run: bool = False) -> Invitation:
        """Renews an invitation for seven days, and sends its email again."""
        call = change("POST", path("/v1/invitations/{}/resend", invitation_id), dry_run=dry_run)
        return self._core.result(call, Invitation)


class AuditLog(Resource):
    """The changes in an organization."""

    def list(
        self,
        *,
        actor_id: str | None = None,
        action: Action | None = None,
        resource_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        organization_id: str | None = None,
    ) -> Pages[AuditLogEntry]:
        """Lists the changes, newest first: who did what, to which resource, and from where."""
        query = {
            "actorId": actor_id,
            "action": action,
            "resourceId": resource_id,
            "since": since,
            "until": until,
            "limit": limit,
            "organizationId": self._organization(organization_id),
        }
        return Pages(self._core, "/v1/audit-log", AuditLogEntry, cursor, query)


class BillingOverview(Resource):
    """The plan and the credits of an organization."""

    def get(self, *, organization_id: str | None = None) -> Billing:
        """Returns the plan with its limits and features, the credit balance, and the top-up settings."""
        call = get("/v1/billing", organizationId=self._organization(organization_id))
        return self._core.result(call, Billing)


class Me(Resource):
    """The caller."""

    def get(self) -> CallingCredential:
        """Returns the identity of the credential, its scopes, and the organizations that it can access."""
        return self._core.result(get("/v1/me"), CallingCredential)

    def save_active_organization(self, organization_id: str, *, dry_run: bool = False) -> ActiveOrganization:
        """Saves the organization in which the person's requests act if they don't name one."""
        body = {"organizationId": organization_id}
        call = change("PUT", "/v1/me/active-organization", body, dry_run=dry_run)
        return self._core.result(call, ActiveOrganization)


class Sessions(Resource):
    """The person's sessions, devices, and tokens."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[Session]:
        """Lists the person's sessions, devices, and tokens, newest first. Without sessions.write, only itself."""
        return Pages(self._core, "/v1/me/sessions", Session, cursor, {"limit": limit})

    def revoke(self, session_id: str, *, dry_run: bool = False) -> RevokedSession:
        """Revokes a session or device. Its tokens stop working immediately."""
        call = change("DELETE", path("/v1/me/sessions/{}", session_id), dry_run=dry_run)
        return self._core.result(call, RevokedSession)
