"""The users of the load test. Locust runs this file in an environment of its own: it imports nothing of the project.

Ours and the naive peer get the same requests, in the proportions of `make cost`'s mix that both have. The environment
variables LOAD_KEY and LOAD_PROJECTS name the API key and the projects. With LOAD_DELETES, each created project is
deleted again, so that the table holds as many after the test as before it.
"""

import os
import random

from locust import FastHttpUser, constant, task

_PROJECTS = os.environ["LOAD_PROJECTS"].split(",")
_HEADERS = {"Authorization": f"Bearer {os.environ['LOAD_KEY']}"}
_BODY = {"name": "Load", "region": "eu-central", "websites": ["https://load.example.com"]}
_DELETES = "LOAD_DELETES" in os.environ


class Client(FastHttpUser):  # type: ignore[misc]
    """One caller that waits for each response before its next request."""

    wait_time = constant(0)

    @task(60)  # type: ignore[untyped-decorator]
    def get_project(self) -> None:
        self.client.get(f"/v1/projects/{_any()}", headers=_HEADERS, name="get")

    @task(20)  # type: ignore[untyped-decorator]
    def list_projects(self) -> None:
        self.client.get("/v1/projects?limit=50", headers=_HEADERS, name="list")

    @task(10)  # type: ignore[untyped-decorator]
    def update_project(self) -> None:
        changed = {"description": f"Number {random.randrange(1_000)}"}  # nosec B311
        # Of two changes of one project at the same time, either side may refuse the second.
        with self.client.patch(
            f"/v1/projects/{_any()}", json=changed, headers=_HEADERS, name="patch", catch_response=True
        ) as response:
            if response.status_code == 409:
                response.success()

    @task(6)  # type: ignore[untyped-decorator]
    def list_regions(self) -> None:
        self.client.get("/v1/regions", name="regions")

    @task(4)  # type: ignore[untyped-decorator]
    def create_project(self) -> None:
        created = self.client.post("/v1/projects", json=_BODY, headers=_HEADERS, name="create")
        if _DELETES and created.status_code == 201:
            project_id = created.json()["data"]["id"]
            self.client.delete(f"/v1/projects/{project_id}", headers=_HEADERS, name="delete")


def _any() -> str:
    return random.choice(_PROJECTS)  # nosec B311
