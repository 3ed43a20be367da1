"""One call of each operation with the SDK, by the operation's id. Tests run them against the document's examples."""

CALLS = {
    "getAgentFeedback": "client.feedback.discovery()",
    "getAuthorizationServer": "client.device.metadata()",
    "getHealth": "client.health.get()",
    "getOpenapi": "client.openapi.get()",
    "listApiKeys": "client.api_keys.list()",
    "createApiKey": 'client.api_keys.create(name="Deploys", scopes=["projects.read", "inbox.read"])',
    "getApiKey": 'client.api_keys.get("key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "updateApiKey": 'client.api_keys.update("key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", name="Deploys")',
    "deleteApiKey": 'client.api_keys.delete("key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "rollApiKey": 'client.api_keys.roll("key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", grace_period_seconds=86400)',
    "listAuditLog": 'client.audit_log.list(action="project.update", since=datetime(2026, 3, 1, tzinfo=UTC))',
    "createDeviceCode": 'client.device.start(scopes=["projects.read"], device_name="build server")',
    "createDeviceToken": 'client.device.refresh("assent_rt_…")',
    "revokeDeviceToken": 'client.device.revoke("assent_rt_…")',
    "getBilling": "client.billing.get()",
    "listRepositories": "client.repositories.list()",
    "disconnectRepository": 'client.repositories.disconnect("rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "listLinks": 'client.links.list("rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "createLink": (
        'client.links.create("rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", '
        'project_id="prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", scan_on_push=True)'
    ),
    "updateLink": (
        'client.links.update("rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", '
        'schedule="daily", root_directory=None)'
    ),
    "deleteLink": (
        'client.links.delete("rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")'
    ),
    "getScanRequest": (
        'client.scans.request("spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", '
        'repository_id="rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")'
    ),
    "listScans": 'client.scans.list(repository_id="rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", status="completed")',
    "startScan": 'client.scans.start(repository_id="rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "getScan": 'client.scans.get("scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", wait_seconds=20)',
    "compareScans": 'client.scans.diff("scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "listScanIssues": 'client.scans.issues("scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "getScanSarif": 'client.scans.sarif("scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "unlockScan": 'client.scans.unlock("scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "createFeedback": 'client.feedback.create(category="bug", surface="sdk", message="The list ends too early.")',
    "listInboxItems": 'client.inbox.list(status="open", priority="P0")',
    "updateInboxItems": (
        'client.inbox.update_many([InboxItemChange(id="inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", status="dismissed", '
        'version="0f9c2b4d7e1a4c3f8b6d5e2a19c70b48")])'
    ),
    "getInboxItem": 'client.inbox.get("inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "updateInboxItem": (
        'client.inbox.update("inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", status="dismissed", '
        'version="0f9c2b4d7e1a4c3f8b6d5e2a19c70b48")'
    ),
    "createGithubIssue": 'client.inbox.create_github_issue("inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "listInvitations": "client.invitations.list()",
    "createInvitation": 'client.invitations.create(email="grace@example.com", role="member")',
    "deleteInvitation": 'client.invitations.delete("inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "resendInvitation": 'client.invitations.resend("inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "getMe": "client.me.get()",
    "saveActiveOrganization": 'client.me.save_active_organization("org_3f8k2m9q7r1s5t6v")',
    "listSessions": "client.sessions.list()",
    "revokeSession": 'client.sessions.revoke("ses_01kb2m3n4p5q6r7s8t")',
    "listMembers": "client.members.list()",
    "updateMember": 'client.members.update("mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v", role="admin")',
    "deleteMember": 'client.members.delete("mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v")',
    "listOrganizations": "client.organizations.list()",
    "createOrganization": 'client.organizations.create(name="Acme Shops", slug="acme-shops")',
    "getOrganization": 'client.organizations.get("org_3f8k2m9q7r1s5t6v")',
    "listProjects": "client.projects.list()",
    "createProject": 'client.projects.create(name="Shop", region="eu-central", websites=["shop.example.com"])',
    "getProject": 'client.projects.get("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "updateProject": 'client.projects.update("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", description=None)',
    "deleteProject": 'client.projects.delete("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "getProjectConsent": 'client.projects.consent("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "listVendors": 'client.vendors.list("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t")',
    "decideVendor": 'client.vendors.decide("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", "segment", decision="approve")',
    "deleteWebsite": (
        'client.projects.delete_website("prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t", "web_01kb2m3n4p5q6r7s8t")'
    ),
    "listRegions": "client.regions.list()",
    "getRequest": 'client.requests.get("1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-01kb2m3n4p")',
    "listWebhookEndpoints": "client.webhook_endpoints.list()",
    "createWebhookEndpoint": (
        'client.webhook_endpoints.create(name="Alerts", url="https://hooks.example.com/assent", '
        'events=["finding.opened"])'
    ),
    "getWebhookEndpoint": 'client.webhook_endpoints.get("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "updateWebhookEndpoint": (
        'client.webhook_endpoints.update("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", status="enabled")'
    ),
    "deleteWebhookEndpoint": 'client.webhook_endpoints.delete("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "listWebhookDeliveries": 'client.webhook_endpoints.deliveries("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
    "replayWebhookDelivery": (
        'client.webhook_endpoints.replay("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v", '
        '"evt_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")'
    ),
    "rotateWebhookSecret": 'client.webhook_endpoints.rotate_secret("whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")',
}
