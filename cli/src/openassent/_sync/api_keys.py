# Made from _async/api_keys.py by `make sdk`: edit that file.
"""API keys."""

from collections.abc import Sequence
from datetime import datetime

from openassent._calls import OMIT, Omit, change, create, get, given, nullable, path
from openassent._sync._pages import Pages
from openassent._sync._resource import Resource
from openassent.models import ApiKey, CreatedKey, DeletedKey, RolledKey
from openassent.values import KeyScope


class ApiKeys(Resource):
    """The organization's API keys."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, organization_id: str | None = None
    ) -> Pages[ApiKey]:
        """Lists the organization's API keys, newest first, without their secrets."""
        query = {"limit": limit, "organizationId": self._organization(organization_id)}
        return Pages(self._core, "/v1/api-keys", ApiKey, cursor, query)

    def create(
        self,
        *,
        name: str,
        description: str | None = None,
        scopes: Sequence[KeyScope] | None = None,
        project_ids: Sequence[str] | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: datetime | None = None,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> CreatedKey:
        """Creates an API key. Its secret, `key`, is in this response only.

        scopes, project_ids, allowed_ips, expires_at: limit what the key can do, to which projects, from which
        networks (CIDR), and until when. Without them, the key has every scope that keys can have, everywhere.
        """
        body = given(
            name=name,
            description=description,
            scopes=scopes,
            projectIds=project_ids,
            allowedIps=allowed_ips,
            expiresAt=expires_at,
        )
        organization_id = self._organization(organization_id)
        call = create("/v1/api-keys", body, idempotency_key, dry_run=dry_run, organizationId=organization_id)
        return self._core.result(call, CreatedKey)

    def get(self, key_id: str) -> ApiKey:
        """Returns an API key, without its secret."""
        return self._core.result(get(path("/v1/api-keys/{}", key_id)), ApiKey)

    def update(
        self,
        key_id: str,
        *,
        name: str | None = None,
        description: str | Omit | None = OMIT,
        scopes: Sequence[KeyScope] | None = None,
        project_ids: Sequence[str] | None = None,
        allowed_ips: Sequence[str] | None = None,
        expires_at: datetime | None = None,
        dry_run: bool = False,
    ) -> ApiKey:
        """Changes an API key, or makes its limits stricter. Raises InvalidRequest if that would give it more.

        description: None removes it.
        """
        body = given(
            name=name, scopes=scopes, projectIds=project_ids, allowedIps=allowed_ips, expiresAt=expires_at
        ) | nullable(description=description)
        call = change("PATCH", path("/v1/api-keys/{}", key_id), body, dry_run=dry_run)
        return self._core.result(call, ApiKey)

    def delete(self, key_id: str, *, organization_id: str | None = None, dry_run: bool = False) -> DeletedKey:
        """Revokes an API key. Its secret stops working immediately.

        With the ID of a key that was rolled, only its old secret stops working, before its grace period ends.
        """
        organization_id = self._organization(organization_id)
        call = change("DELETE", path("/v1/api-keys/{}", key_id), dry_run=dry_run, organizationId=organization_id)
        return self._core.result(call, DeletedKey)

    def roll(
        self,
        key_id: str,
        *,
        grace_period_seconds: int | None = None,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> RolledKey:
        """Replaces an API key with one that has the same name and limits. The new secret is in this response only.

        grace_period_seconds: how long the old secret still works. By default, it stops working immediately.
        """
        body = given(gracePeriodSeconds=grace_period_seconds)
        url, organization_id = path("/v1/api-keys/{}/roll", key_id), self._organization(organization_id)
        call = create(url, body, idempotency_key, dry_run=dry_run, organizationId=organization_id)
        return self._core.result(call, RolledKey)
