"""`assent mcp`: its tools, through the protocol's client in this process, against the handlers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp_types import TextContent, Tool

from openassent import Assent
from openassent_cli.mcp_server import server
from tests.functional.command_line.conftest import Shell, Threads
from tests.functional.command_line.office import Office
from tests.support.api import Api
from tests.support.sdk import ADDRESS, run
from tests.support.world import ALL_SCOPES

READING = {"scan_folder", "whoami", "projects", "vendors", "findings", "finding", "scans"}
CHANGING = {"decide_vendor", "decide_finding", "open_issue", "start_scan", "unlock_scan"}

Connect = Callable[..., "Assistant"]


class Assistant:
    """A client of the server that is given this credential and these scopes."""

    def __init__(self, client: Assent | None, scopes: set[str], *, read_only: bool = False) -> None:
        self._server = server(client, scopes, read_only=read_only)

    def tools(self) -> dict[str, Tool]:
        async def listed() -> list[Tool]:
            async with Client(self._server) as client:
                return (await client.list_tools()).tools

        return {tool.name: tool for tool in run(listed())}

    def call(self, name: str, **arguments: Any) -> tuple[bool, str]:
        """Returns whether the tool failed, and its text."""

        async def called() -> Any:
            async with Client(self._server) as client:
                return await client.call_tool(name, arguments)

        result = run(called())
        (content,) = result.content
        assert isinstance(content, TextContent)
        return bool(result.is_error), content.text

    def read(self, name: str, **arguments: Any) -> Any:
        failed, text = self.call(name, **arguments)
        assert not failed, text
        return json.loads(text)


@pytest.fixture
def connect(threads: Threads, office: Office) -> Connect:
    def create(scopes: list[str] = ALL_SCOPES, *, read_only: bool = False) -> Assistant:
        client = Assent(base_url=ADDRESS, api_key=office.company.owner.token)
        return Assistant(client, set(scopes), read_only=read_only)

    return create


class TestOfferedTools:
    def test_depend_on_the_scopes(self, connect: Connect):
        assert connect().tools().keys() == READING | CHANGING
        assert connect(["inbox.read"]).tools().keys() == {"scan_folder", "whoami", "findings", "finding"}

    def test_dont_change_anything_in_a_read_only_server(self, connect: Connect):
        tools = connect(read_only=True).tools()
        assert tools.keys() == READING
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())

    def test_are_the_offline_scan_without_a_credential(self):
        assert Assistant(None, set()).tools().keys() == {"scan_folder"}

    def test_that_spend_or_publish_are_marked(self, connect: Connect):
        tools = connect().tools()
        hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations}
        assert {name for name, it in hints.items() if it.destructive_hint} == {"open_issue", "unlock_scan"}

    def test_cost_an_assistant_less_than_2000_tokens(self, connect: Connect):
        shown = [(tool.name, tool.description, tool.input_schema) for tool in connect().tools().values()]
        assert len(json.dumps(shown, separators=(",", ":"))) / 4 < 2_000


class TestReading:
    def test_returns_the_json_of_the_api(self, connect: Connect, office: Office, api: Api):
        assistant, token, names = connect(), office.company.owner.token, office.names
        assert assistant.read("whoami") == api.get("/v1/me", token).data
        project = api.get(f"/v1/projects/{names['project']}", token).data
        assert assistant.read("projects", project="shop") == project
        item = api.get(f"/v1/inbox/{names['item']}", token).data
        assert assistant.read("finding", item_id=names["item"]) == item
        assert len(assistant.read("scans", scan_id=names["scan"])["findings"]["issues"]) == 5

    def test_returns_pages(self, connect: Connect, office: Office):
        assistant = connect()
        found = assistant.read("findings", limit=1)
        assert (len(found["items"]), found["more"]) == (1, True)
        (project,) = assistant.read("projects")["items"]
        assert project["projectId"] == office.names["project"]
        assert len(assistant.read("scans", repository="acme/shop")["items"]) == 2
        assert assistant.read("vendors", project="shop")["items"][0]["vendorId"] == "segment"


class TestChanging:
    def test_decides_about_a_finding_and_a_vendor(self, connect: Connect, office: Office):
        assistant, item = connect(), office.names["item"]
        version = assistant.read("finding", item_id=item)["version"]
        changed = assistant.read("decide_finding", item_id=item, version=version, status="accepted", reason="Known")
        assert changed["status"] == "accepted"
        decided = assistant.read("decide_vendor", project="shop", vendor_id="segment", decision="approve")
        assert decided["reviewState"] == "accepted"

    def test_starts_and_unlocks_scans(self, connect: Connect, office: Office):
        assistant = connect()
        assert assistant.read("unlock_scan", scan_id=office.names["preview"])["status"] == "unlocked"
        assert assistant.read("start_scan", repository="acme/shop")["status"] == "starting"


class TestErrors:
    def test_say_what_to_do(self, connect: Connect, office: Office):
        assistant = connect()
        failed, text = assistant.call("projects", project="nope")
        assert (failed, "`assent project list` lists them." in text) == (True, True)
        failed, text = assistant.call("decide_finding", item_id=office.names["item"], version="1", status="accepted")
        assert (failed, "https://api.assent.test/docs/errors#" in text) == (True, True)

    def test_name_an_argument_that_is_wrong(self, connect: Connect):
        failed, text = connect().call("findings", status="closed")
        assert (failed, "status" in text) == (True, True)


def test_the_command_serves_the_tools_of_the_signed_in_person(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    served: list[tuple[MCPServer, str]] = []
    monkeypatch.setattr("mcp.server.MCPServer.run", lambda made, transport: served.append((made, transport)))
    ended = shell.run("mcp --read-only")
    ((made, transport),) = served
    assert (ended.code, ended.stdout, transport) == (0, "", "stdio")
    assert {tool.name for tool in run(made.list_tools())} == READING
    shell.run("logout")
    ended = shell.run("mcp")
    assert (ended.code, ended.stderr) == (0, "You aren't signed in, so only the offline scan is offered.\n")
