"""Response models of what was decided about a request."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field

from controlplane.organizations.audit_log import LogEntry
from controlplane.platform.core.urls import error_page
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp

Decision = Literal["refused", "changed"]


class RefusedProblem(Wire):
    """One problem of an invalid request."""

    code: str = Field(description="The kind of problem.", examples=["missing"])
    field: str | None = Field(
        description="The field or parameter, or null if the operation declares none of that name.", examples=["name"]
    )


class LimitsInForce(Wire):
    """The caller's limits when the request was refused: those that were determined before."""

    requests_per_minute: int = Field(ge=0, description="The credential's limit.", examples=[600])
    requests: int = Field(ge=1, description="The credential's requests in that minute, with this one.", examples=[17])
    plan: str | None = Field(None, description="The organization's plan, if it was read.", examples=["starter"])
    role: str | None = Field(None, description="The caller's role, if it was read.", examples=["member"])
    scopes: list[str] | None = Field(
        None, description="The credential's scopes, if one was missing.", examples=[["projects.read"]]
    )


class Refusal(Wire):
    """Why a request was refused."""

    status: int = Field(ge=400, description="The HTTP status of the response.", examples=[403])
    code: str = Field(description="The error code of the response.", examples=["INSUFFICIENT_SCOPE"])
    rule: str = Field(
        description="The rule that refused it. Finer than `code`, and it may change.", examples=["insufficient_scope"]
    )
    operation: str = Field(description="The method and the path of the operation.", examples=["GET /v1/members"])
    docs_url: str = Field(
        description="Where the code is documented.",
        examples=["https://api.assent.example/docs/errors#INSUFFICIENT_SCOPE"],
        json_schema_extra={"format": "uri"},
    )
    key_id: str | None = Field(
        description="The API key that sent the request, or null for a person.",
        examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"],
    )
    problems: list[RefusedProblem] = Field(description="The problems of an invalid request, at most ten.")
    details: dict[str, str | int | None] = Field(
        description="The details of the response that are numbers, IDs, or names.",
        examples=[{"requiredScope": "members.read"}],
    )
    limits: LimitsInForce

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Self:
        unrecorded: dict[str, Any] = {"keyId": None, "problems": [], "details": {}}
        return cls.model_validate({**unrecorded, **facts, "docsUrl": error_page(facts["code"])})


class RequestChange(Wire):
    """A change that the request made."""

    id: str = Field(description="The entry in the audit log.", examples=["log_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    created_at: Timestamp = Field(description="The time of the change.")
    action: str = Field(description="What was done.", examples=["project.update"])
    resource_id: str = Field(description="What was changed.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])


class DecidedRequest(Wire):
    """The decision about a request."""

    request_id: str = Field(
        description="The request's `X-Request-Id`.", examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-01kb2m3n4p"]
    )
    began_at: Timestamp = Field(description="When the request began.")
    decision: Decision = Field(
        description="Whether the request was refused, or answered after it changed something.", examples=["refused"]
    )
    refusal: Refusal | None = Field(description="Why it was refused, or null.")
    changes: list[RequestChange] = Field(description="What it changed in the organization.")

    @classmethod
    def of(cls, request_id: str, began_at: str, refused: Mapping[str, Any] | None, entries: list[LogEntry]) -> Self:
        """refused: the facts that `controlplane.platform.table.refusals` recorded, or None."""
        return cls(
            request_id=request_id,
            began_at=began_at,
            decision="refused" if refused else "changed",
            refusal=Refusal.of(refused) if refused else None,
            changes=[
                RequestChange(id=it.entry_id, created_at=it.at, action=it.action, resource_id=it.resource)
                for it in entries
            ],
        )
