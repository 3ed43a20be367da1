"""End to end: built with SAM, deployed to a local AWS, and called through its gateway. Once a session."""

from collections.abc import Iterator

import pytest

from controlplane.platform.core.aws_clients import create_client
from controlplane.platform.table.table import table
from tests.e2e import deployment, failures, story
from tests.e2e.deployment import ROOT, Stack
from tests.e2e.external import ExternalServices, running_services
from tests.support.engines import running_engine
from tests.support.world import Company, World

# The first test of a session waits for the build and the deployment, and the first one of an upgrade for three
# deployments, under traffic.
_SETUP_SECONDS = 900


def pytest_configure(config: pytest.Config) -> None:
    for steps in (story, failures):  # their fixtures
        config.pluginmanager.register(steps)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "e2e"):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(_SETUP_SECONDS))
    # What changes the stack for good comes last.
    items.sort(key=lambda item: item.path.name == "test_deployed_restore.py")


@pytest.fixture(scope="session")
def sizes() -> str:
    """Builds the artifacts. Returns the report of sizes."""
    return deployment.build()


@pytest.fixture(scope="session")
def external(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalServices]:
    with running_services(tmp_path_factory.mktemp("github")) as services:
        yield services


@pytest.fixture(scope="session")
def stack(sizes: str, external: ExternalServices) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as environment:
        # MiniStack then enforces the functions' own roles: a call that a policy doesn't allow is denied here too.
        environment.setenv("AUTH", "true")
        with running_engine("MiniStack", *deployment.MINISTACK) as engine:
            deployment.deploy(engine.endpoint_url, external.parameters, deployment.PACKED)
            deployed = Stack(engine.endpoint_url)
            deployment.convert_concurrency(deployed)
            deployment.connect(deployed, external)
            yield deployed


@pytest.fixture(scope="session")
def world(stack: Stack) -> World:
    """Creates users, organizations, and keys in the deployed table through the store, as an operator does."""
    table.client = create_client("dynamodb", stack.endpoint_url)
    table.name = stack.outputs["TableName"]
    return World()


@pytest.fixture(scope="session")
def company(world: World) -> Company:
    return world.company("pro")
