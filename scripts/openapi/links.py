"""Links from values in a response to the parameters of the next operation. Programs and tests follow them.

A list also links to its own next page, with the parameters it was asked with.
"""

from scripts.openapi.components import Object

_PROJECT = {"getProject", "updateProject", "deleteProject", "getProjectConsent"}
_SCAN = {"getScan", "listScanIssues", "unlockScan"}
_ITEM = {"getInboxItem", "updateInboxItem", "createGithubIssue"}
_KEY = {"rollApiKey", "deleteApiKey"}
_MEMBER = {"updateMember", "deleteMember"}

# By operation: the place in `data`, the parameter it is for, and the operations that take it.
_FOLLOWED: dict[str, list[tuple[str, str, set[str]]]] = {
    "createApiKey": [("keyId", "keyId", _KEY)],
    "createInvitation": [("id", "invitationId", {"deleteInvitation"})],
    "createOrganization": [
        ("id", "organizationId", {"getOrganization", "getBilling", "createProject", "createInvitation"})
    ],
    "createProject": [("id", "projectId", _PROJECT)],
    "getInboxItem": [("id", "itemId", _ITEM - {"getInboxItem"})],
    "getMe": [("activeOrganizationId", "organizationId", {"getOrganization", "getBilling"})],
    "getProject": [("id", "projectId", _PROJECT - {"getProject"})],
    "getScan": [("id", "scanId", _SCAN - {"getScan"})],
    "getScanRequest": [("scan/id", "scanId", _SCAN)],
    "listApiKeys": [("0/keyId", "keyId", _KEY)],
    "listInboxItems": [("0/id", "itemId", _ITEM)],
    "listInvitations": [("0/id", "invitationId", {"deleteInvitation"})],
    "listMembers": [("0/id", "memberId", _MEMBER)],
    "listOrganizations": [("0/organizationId", "organizationId", {"getOrganization", "listProjects", "getBilling"})],
    "listProjects": [("0/projectId", "projectId", _PROJECT)],
    "listRepositories": [("0/id", "repositoryId", {"listScans"})],
    "listScanIssues": [("issues/0/inboxItemId", "itemId", _ITEM)],
    "listScans": [("0/id", "scanId", _SCAN)],
    "listSessions": [("0/id", "sessionId", {"revokeSession"})],
    "rollApiKey": [("keyId", "keyId", _KEY)],
    "startScan": [("scan/id", "scanId", {"getScan"})],
    "updateInboxItem": [("id", "itemId", _ITEM)],
    "updateProject": [("projectId", "projectId", _PROJECT)],
}
# Links that take more than one thing along.
_TOGETHER: dict[str, dict[str, dict[str, str]]] = {
    "createProject": {"deleteWebsite": {"projectId": "id", "websiteId": "websites/0/id"}},
    "getProject": {"deleteWebsite": {"projectId": "id", "websiteId": "websites/0/id"}},
    "getInboxItem": {"decideVendor": {"projectId": "runtimeVendor/projectId", "vendorId": "runtimeVendor/vendorId"}},
    "startScan": {"getScanRequest": {"preparationId": "preparationId", "repositoryId": "repositoryId"}},
}


def add(paths: Object, parameters: Object) -> None:
    """Adds the links to the usual success of each operation. Raises SystemExit for one that leads nowhere."""
    operations = {operation["operationId"]: operation for path in paths.values() for operation in path.values()}
    taken = {name: _places(operation, parameters) for name, operation in operations.items()}
    for name in {*_FOLLOWED, *_TOGETHER, *operations}:
        if name not in operations:
            raise SystemExit(f"{name} has links, and is no operation")
        links = _links(name, taken[name])
        for link in links.values():
            if not link["parameters"].keys() <= taken.get(link["operationId"], {}).keys():
                raise SystemExit(f"{name} links to what {link['operationId']} does not take")
        if links:
            usual = max(status for status in operations[name]["responses"] if status.startswith("2"))
            operations[name]["responses"][usual]["links"] = links


def _places(operation: Object, parameters: Object) -> dict[str, str]:
    """Where the operation takes each of its parameters, by name."""
    found = [
        parameters[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation.get("parameters", ())
    ]
    return {parameter["name"]: parameter["in"] for parameter in found}


def _links(name: str, taken: dict[str, str]) -> Object:
    links = {}
    if "cursor" in taken:
        same = {other: f"$request.query.{other}" for other, place in taken.items() if place == "query"}
        links["nextPage"] = {
            "operationId": name,
            "description": "The next page of the same list.",
            "parameters": {**same, "cursor": "$response.body#/pagination/nextCursor"},
        }
    for place, parameter, targets in _FOLLOWED.get(name, ()):
        links |= {target: _link(target, {parameter: place}) for target in sorted(targets)}
    return links | {target: _link(target, places) for target, places in _TOGETHER.get(name, {}).items()}


def _link(operation_id: str, places: dict[str, str]) -> Object:
    return {
        "operationId": operation_id,
        "parameters": {name: f"$response.body#/data/{place}" for name, place in places.items()},
    }
