"""Response models of the audit log."""

from typing import Any, Self

from pydantic import Field

from controlplane.organizations.audit_log import LogEntry
from controlplane.platform.core.acting import ActorKind, Source
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp


class LogActor(Wire):
    """The actor that made a change."""

    type: ActorKind = Field(
        description="A person, an API key, the operator, or the service itself.", examples=["person"]
    )
    id: str = Field(
        description="The ID of the person or the API key, `operator`, or the name of a part of the service.",
        examples=["usr_5w1n8q2k7m3r9t4v"],
    )


class LogResource(Wire):
    """The resource that was changed."""

    id: str = Field(description="The resource's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    name: str | None = Field(description="The resource's name at that time, or null.", examples=["Shop"])


class LogChange(Wire):
    """A field with its values before and after a change. Long texts and lists are cut, and end with `…`."""

    field: str = Field(description="The field's name.", examples=["name"])
    before: Any = Field(description="The value before, or null.", examples=["Store"])
    after: Any = Field(description="The value after, or null.", examples=["Shop"])


class AuditLogEntry(Wire):
    """A change in an organization."""

    id: str = Field(description="The entry's ID.", examples=["log_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    created_at: Timestamp = Field(description="The time of the change.")
    action: str = Field(description="What was done.", examples=["project.update"])
    actor: LogActor
    source: Source = Field(
        description="Where it was done: on a web page, with the API, by the operator, or in the background.",
        examples=["api"],
    )
    resource: LogResource
    request_id: str | None = Field(
        description="The `X-Request-Id` of the request, or null if no request made the change.",
        examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-01kb2m3n4p"],
    )
    changes: list[LogChange] = Field(description="What changed. Empty if the action has no values.")

    @classmethod
    def of(cls, entry: LogEntry) -> Self:
        return cls.showing(
            entry,
            id=entry.entry_id,
            created_at=entry.at,
            actor=LogActor(type=entry.actor_kind, id=entry.actor_id),
            resource=LogResource(id=entry.resource, name=entry.name),
        )
