"""The operations that have a command of their own, by their ids, with the values of the document's examples.

The others have `assent api`. Tests parse every command with `assent` itself, and compare the values with those of the
curl sample.
"""

_KEY = "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
_REPOSITORY = "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_PROJECT = "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_SCAN = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_ITEM = "inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_MEMBER = "mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"
_LIMITS = "--description 'Publishes releases.' --scope inbox.read --scope projects.read"
_LINK = (
    f"assent repo link {_REPOSITORY} {_PROJECT} --branch main --root apps/web --pull-requests --pushes --schedule daily"
)
_DISMISS = f"assent inbox dismiss {_ITEM} --reason 'Loaded by the consent manager itself'"

COMMANDS = {
    "listApiKeys": "assent key list",
    "listAuthKeys": "assent key list",
    "createApiKey": (
        f"assent key create 'Production deploys' {_LIMITS} --project {_PROJECT} "
        "--allow-ip 203.0.113.0/24 --allow-ip 2001:db8::/32 --expires-in 300d"
    ),
    "deleteApiKey": f"assent key delete {_KEY}",
    "rollApiKey": f"assent key roll {_KEY}",
    "createDeviceCode": (
        "assent login --base-url https://api.assent.example --scope organizations.read --scope projects.read"
    ),
    "createDeviceToken": "assent login --base-url https://api.assent.example",
    "revokeDeviceToken": "assent logout",
    "listRepositories": "assent repo list",
    "createLink": _LINK,
    "updateLink": _LINK,
    "deleteLink": f"assent repo unlink {_REPOSITORY} {_PROJECT}",
    "listScans": "assent scan list",
    "startScan": f"assent scan start {_REPOSITORY} --project {_PROJECT}",
    "getScan": f"assent scan show {_SCAN} --no-issues",
    "compareScans": f"assent scan diff {_SCAN}",
    "listScanIssues": f"assent scan show {_SCAN}",
    "unlockScan": f"assent scan unlock {_SCAN}",
    "listInboxItems": "assent inbox list --status all",
    "updateInboxItems": _DISMISS,
    "getInboxItem": f"assent inbox show {_ITEM}",
    "updateInboxItem": _DISMISS,
    "createGithubIssue": f"assent inbox issue {_ITEM}",
    "createInvitation": "assent member invite grace@example.com --role member",
    "getMe": "assent whoami",
    "listMembers": "assent member list",
    "updateMember": f"assent member set-role {_MEMBER} admin",
    "deleteMember": f"assent member remove {_MEMBER}",
    "listOrganizations": "assent org list",
    "createOrganization": "assent org create 'Acme Shops' --slug acme-shops",
    "listProjects": "assent project list",
    "createProject": "assent project create Shop --region eu-central --website example.com",
    "getProject": f"assent project show {_PROJECT}",
    "updateProject": f"assent project update {_PROJECT} --name Shop --description 'The web shop'",
    "deleteProject": f"assent project delete {_PROJECT}",
    "listVendors": f"assent vendor list {_PROJECT}",
    "decideVendor": f"assent vendor approve {_PROJECT} segment",
    "deleteWebsite": f"assent website remove {_PROJECT} web_01kb2m3n4p5q6r7s8t",
}
