"""The values of arguments. Made from docs/openapi.json by `make sdk`.

A service that is newer than this package may accept others, so each is any string for a type checker.
"""

from typing import Literal

Action = (
    Literal[
        "organization.create",
        "organization.delete",
        "organization.change_plan",
        "billing.add_credits",
        "billing.change_top_up",
        "member.add",
        "member.change_role",
        "member.remove",
        "member.join",
        "invitation.create",
        "invitation.resend",
        "invitation.cancel",
        "invitation.decline",
        "api_key.create",
        "api_key.update",
        "api_key.roll",
        "api_key.delete",
        "api_key.revoke_leaked",
        "api_key.end_grace_period",
        "project.create",
        "project.update",
        "project.delete",
        "website.delete",
        "audit.create",
        "audit.delete",
        "audit.run",
        "vendor.decide",
        "vendor.detect",
        "advisory.publish",
        "repository.connect",
        "repository.update",
        "repository.lose_access",
        "repository.disconnect",
        "link.create",
        "link.update",
        "link.delete",
        "scan.request",
        "scan.complete",
        "scan.fail",
        "scan.cancel",
        "scan.unlock",
        "inbox.change_status",
        "issue.request",
        "issue.record",
        "issue.refuse",
        "issue.change_state",
        "webhook.create",
        "webhook.update",
        "webhook.rotate_secret",
        "webhook.delete",
        "webhook.disable",
        "webhook.replay",
    ]
    | str
)
Branding = Literal["assent", "openassent", "none"] | str
Decision = Literal["approve", "ignore"] | str
EventName = (
    Literal[
        "finding.opened",
        "finding.resolved",
        "scan.completed",
        "key.created",
        "key.leaked",
        "member.joined",
        "credits.low",
    ]
    | str
)
FeedbackCategory = Literal["bug", "friction", "docs_mismatch", "feature_request", "performance"] | str
FeedbackSurface = Literal["api", "mcp", "cli", "docs", "sdk", "dashboard", "other"] | str
InboxSource = Literal["advisory", "code-audit", "runtime"] | str
InboxStatus = Literal["open", "accepted", "dismissed", "resolved"] | str
KeyScope = (
    Literal["api-keys.read", "billing.read", "inbox.read", "organizations.read", "projects.read", "projects.write"]
    | str
)
Priority = Literal["P0", "P1", "P2", "P3"] | str
RegionId = Literal["eu-central", "eu-west", "us-east", "us-west", "ap-southeast", "ap-northeast"] | str
Role = Literal["owner", "admin", "member"] | str
ScanStatus = Literal["queued", "running", "completed", "failed", "canceled"] | str
Schedule = Literal["daily", "weekly"] | str
WebhookFormat = Literal["standard", "slack"] | str
WebhookStatus = Literal["enabled", "disabled"] | str
