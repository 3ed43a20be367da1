"""The command of each operation, by the operation's id, with the values of the document's examples.

An operation without a command has the reason, which starts with a number sign. Tests parse every command with `assent`
itself, and compare the values with those of the curl sample.
"""

_KEY = "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
_REPOSITORY = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_PROJECT = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_SCAN = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_ITEM = "inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_INVITATION = "inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
_MEMBER = "mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"
_ENDPOINT = "whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
_EVENT = "evt_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
_LIMITS = "--description 'Publishes releases.' --scope inbox.read --scope projects.read"
_LINK = (
    f"assent repo link {_REPOSITORY} {_PROJECT} --branch main --root apps/web --pull-requests --pushes --schedule daily"
)
_DISMISS = f"assent inbox dismiss {_ITEM} --reason 'Loaded by the consent manager itself'"
_NONE = "# The command line has no command for this."

COMMANDS = {
    "getAgentFeedback": _NONE,
    "getAuthorizationServer": f"{_NONE} `assent login` knows the endpoints.",
    "getHealth": _NONE,
    "getOpenapi": _NONE,
    "listApiKeys": "assent key list",
    "listAuthKeys": "assent key list",
    "createApiKey": (
        f"assent key create 'Production deploys' {_LIMITS} --project {_PROJECT} "
        "--allow-ip 203.0.113.0/24 --allow-ip 2001:db8::/32 --expires-in 300d"
    ),
    "getApiKey": f"assent key show {_KEY}",
    "updateApiKey": f"assent key update {_KEY} --name Deploys {_LIMITS} --expires-in 300d",
    "deleteApiKey": f"assent key delete {_KEY}",
    "rollApiKey": f"assent key roll {_KEY}",
    "listAuditLog": "assent audit-log list",
    "createDeviceCode": (
        "assent login --base-url https://api.assent.example --scope organizations.read --scope projects.read"
    ),
    "createDeviceToken": "assent login --base-url https://api.assent.example",
    "revokeDeviceToken": "assent logout",
    "getBilling": "assent billing show",
    "listRepositories": "assent repo list",
    "disconnectRepository": f"assent repo disconnect {_REPOSITORY}",
    "listLinks": f"{_NONE} `assent repo list` shows the projects of each repository.",
    "createLink": _LINK,
    "updateLink": _LINK,
    "deleteLink": f"assent repo unlink {_REPOSITORY} {_PROJECT}",
    "getScanRequest": f"{_NONE} `assent scan start {_REPOSITORY} --wait` follows the request that it makes.",
    "listScans": "assent scan list",
    "startScan": f"assent scan start {_REPOSITORY} --project {_PROJECT}",
    "getScan": f"assent scan show {_SCAN} --no-issues",
    "compareScans": f"assent scan diff {_SCAN}",
    "listScanIssues": f"assent scan show {_SCAN}",
    "getScanSarif": f"assent scan sarif {_SCAN}",
    "unlockScan": f"assent scan unlock {_SCAN}",
    "createFeedback": _NONE,
    "listInboxItems": "assent inbox list --status all",
    "updateInboxItems": _DISMISS,
    "getInboxItem": f"assent inbox show {_ITEM}",
    "updateInboxItem": _DISMISS,
    "createGithubIssue": f"assent inbox issue {_ITEM}",
    "listInvitations": "assent invite list",
    "createInvitation": "assent invite create grace@example.com --role member",
    "deleteInvitation": f"assent invite cancel {_INVITATION}",
    "resendInvitation": f"assent invite resend {_INVITATION}",
    "getMe": "assent whoami",
    "saveActiveOrganization": f"{_NONE} `assent org use org_3f8k2m9q7r1s5t6v` chooses for the command line only.",
    "listSessions": _NONE,
    "revokeSession": f"{_NONE} `assent logout` revokes its own session.",
    "listMembers": "assent member list",
    "updateMember": f"assent member set-role {_MEMBER} admin",
    "deleteMember": f"assent member remove {_MEMBER}",
    "listOrganizations": "assent org list",
    "createOrganization": "assent org create 'Acme Shops' --slug acme-shops",
    "getOrganization": "assent org show org_3f8k2m9q7r1s5t6v",
    "listProjects": "assent project list",
    "createProject": "assent project create Shop --region eu-central --website example.com",
    "getProject": f"assent project show {_PROJECT}",
    "updateProject": f"assent project update {_PROJECT} --name Shop --description 'The web shop'",
    "deleteProject": f"assent project delete {_PROJECT}",
    "getProjectConsent": f"{_NONE} `assent project show {_PROJECT}` includes the consent instance.",
    "listVendors": f"assent vendor list {_PROJECT}",
    "decideVendor": f"assent vendor approve {_PROJECT} segment",
    "deleteWebsite": f"assent website remove {_PROJECT} web_01kb2m3n4p5q6r7s8t",
    "listRegions": "assent project regions",
    "getRequest": _NONE,
    "listWebhookEndpoints": "assent webhook list",
    "createWebhookEndpoint": (
        "assent webhook create Alerts https://hooks.example.com/assent --event finding.opened --event finding.resolved"
    ),
    "getWebhookEndpoint": f"{_NONE} `assent webhook list` shows all endpoints.",
    "updateWebhookEndpoint": _NONE,
    "deleteWebhookEndpoint": f"assent webhook delete {_ENDPOINT}",
    "listWebhookDeliveries": f"assent webhook deliveries {_ENDPOINT}",
    "replayWebhookDelivery": f"assent webhook replay {_ENDPOINT} {_EVENT}",
    "rotateWebhookSecret": _NONE,
}
