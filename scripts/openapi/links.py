"""Links from values in a response to the parameters of the next operation. Programs and tests follow them.

A list also links to its own next page, with the same query parameters.
"""

from scripts.openapi.components import Object

_PROJECT = {"getProject", "updateProject", "deleteProject", "getProjectConsent", "listVendors"}
_SCAN = {"getScan", "listScanIssues", "unlockScan", "getScanSarif", "compareScans"}
_ITEM = {"getInboxItem", "updateInboxItem", "createGithubIssue"}
_KEY = {"getApiKey", "updateApiKey", "rollApiKey", "deleteApiKey"}
_MEMBER = {"updateMember", "deleteMember"}

# By operation: the path in `data`, the parameter that it fills, and the target operations.
_WEBHOOK = {"getWebhookEndpoint", "updateWebhookEndpoint", "listWebhookDeliveries", "deleteWebhookEndpoint"}
_SINGLE: dict[str, list[tuple[str, str, set[str]]]] = {
    "createApiKey": [("keyId", "keyId", _KEY)],
    "createInvitation": [("id", "invitationId", {"deleteInvitation", "resendInvitation"})],
    "createOrganization": [
        ("id", "organizationId", {"getOrganization", "getBilling", "createProject", "createInvitation"})
    ],
    "createWebhookEndpoint": [("id", "webhookId", _WEBHOOK)],
    "createProject": [("id", "projectId", _PROJECT)],
    "getApiKey": [("keyId", "keyId", _KEY - {"getApiKey"})],
    "getInboxItem": [("id", "itemId", _ITEM - {"getInboxItem"})],
    "getMe": [("activeOrganizationId", "organizationId", {"getOrganization", "getBilling"})],
    "getProject": [("id", "projectId", _PROJECT - {"getProject"})],
    "getScan": [("id", "scanId", _SCAN - {"getScan"})],
    "getScanRequest": [("scan/id", "scanId", _SCAN)],
    "listApiKeys": [("0/keyId", "keyId", _KEY)],
    "listInboxItems": [("0/id", "itemId", _ITEM)],
    "listInvitations": [("0/id", "invitationId", {"deleteInvitation", "resendInvitation"})],
    "listMembers": [("0/id", "memberId", _MEMBER)],
    "listOrganizations": [("0/organizationId", "organizationId", {"getOrganization", "listProjects", "getBilling"})],
    "listProjects": [("0/projectId", "projectId", _PROJECT)],
    "listRepositories": [("0/id", "repositoryId", {"listScans", "listLinks", "disconnectRepository"})],
    "listScanIssues": [("issues/0/inboxItemId", "itemId", _ITEM)],
    "listWebhookEndpoints": [("0/id", "webhookId", _WEBHOOK)],
    "listScans": [("0/id", "scanId", _SCAN)],
    "listSessions": [("0/id", "sessionId", {"revokeSession"})],
    "rollApiKey": [("keyId", "keyId", _KEY)],
    "saveActiveOrganization": [("activeOrganizationId", "organizationId", {"getOrganization", "getBilling"})],
    "startScan": [("scan/id", "scanId", {"getScan"})],
    "updateApiKey": [("keyId", "keyId", _KEY - {"updateApiKey"})],
    "updateInboxItem": [("id", "itemId", _ITEM)],
    "updateProject": [("projectId", "projectId", _PROJECT)],
}
# Links that fill more than one parameter.
_COMBINED: dict[str, dict[str, dict[str, str]]] = {
    "createProject": {"deleteWebsite": {"projectId": "id", "websiteId": "websites/0/id"}},
    "getProject": {"deleteWebsite": {"projectId": "id", "websiteId": "websites/0/id"}},
    "getInboxItem": {"decideVendor": {"projectId": "runtimeVendor/projectId", "vendorId": "runtimeVendor/vendorId"}},
    "listVendors": {"decideVendor": {"projectId": "0/projectId", "vendorId": "0/vendorId"}},
    "startScan": {"getScanRequest": {"preparationId": "preparationId", "repositoryId": "repositoryId"}},
}


def add(paths: Object, parameters: Object) -> None:
    """Adds the links to the success response of each operation. Raises SystemExit if a target doesn't exist."""
    operations = {operation["operationId"]: operation for path in paths.values() for operation in path.values()}
    accepted = {name: _locations(operation, parameters) for name, operation in operations.items()}
    for name in {*_SINGLE, *_COMBINED, *operations}:
        if name not in operations:
            raise SystemExit(f"{name} has links, but isn't an operation")
        links = _links(name, accepted[name])
        for link in links.values():
            if not link["parameters"].keys() <= accepted.get(link["operationId"], {}).keys():
                raise SystemExit(f"{name} links to a parameter that {link['operationId']} doesn't have")
        if links:
            success = max(status for status in operations[name]["responses"] if status.startswith("2"))
            operations[name]["responses"][success]["links"] = links


def _locations(operation: Object, parameters: Object) -> dict[str, str]:
    """Returns the location (`in`) of each of the operation's parameters, by name."""
    found = [
        parameters[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation.get("parameters", ())
    ]
    return {parameter["name"]: parameter["in"] for parameter in found}


def _links(name: str, accepted: dict[str, str]) -> Object:
    links = {}
    if "cursor" in accepted:
        same = {other: f"$request.query.{other}" for other, place in accepted.items() if place == "query"}
        links["nextPage"] = {
            "operationId": name,
            "description": "The next page of the same list.",
            "parameters": {**same, "cursor": "$response.body#/pagination/nextCursor"},
        }
    for place, parameter, targets in _SINGLE.get(name, ()):
        links |= {target: _link(target, {parameter: place}) for target in sorted(targets)}
    return links | {target: _link(target, places) for target, places in _COMBINED.get(name, {}).items()}


def _link(operation_id: str, places: dict[str, str]) -> Object:
    return {
        "operationId": operation_id,
        "parameters": {name: f"$response.body#/data/{place}" for name, place in places.items()},
    }
