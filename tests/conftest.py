"""Setup that every test depends on: its own environment, a settable clock, and a fresh table made from the template."""

import os
from collections.abc import Iterator
from functools import cache

import botocore.session
import pytest

from local.template import load_template

os.environ.update(
    TABLE_NAME="assent-test",
    SIGNING_SECRET="test-signing-secret-of-enough-length",
    PUBLIC_BASE_URL="https://api.assent.test",
    DASHBOARD_BASE_URL="https://dashboard.assent.test",
    REGIONS="eu-central|Europe (Frankfurt);eu-west|Europe (Ireland);us-east|United States (Virginia)",
    AWS_REGION="eu-central-1",
    AWS_DEFAULT_REGION="eu-central-1",
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_EC2_METADATA_DISABLED="true",
    # No worker runs while a test's request does: the request looks for the scan once and doesn't wait.
    SCAN_START_WAIT_SECONDS="0",
    # The longest allowed: moto can be slow on a busy machine. Tests of this budget set it themselves.
    DEPENDENCY_SECONDS="15",
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="assent",
)
for queue in (it["Name"] for it in load_template()["Mappings"]["Functions"].values() if "VisibilityTimeout" in it):
    name = queue.replace("-", "_").upper()
    os.environ[f"{name}_QUEUE_URL"] = f"https://queues.assent.test/{queue}"
    os.environ[f"{name}_DEAD_LETTERS_URL"] = f"https://queues.assent.test/{queue}-dead-letters"
os.environ.pop("AWS_SESSION_TOKEN", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", choices=("moto", "fast"), default="moto", help="the functional tests' DynamoDB")
    parser.addoption("--client", choices=("own", "boto3"), default="own", help="the client of AWS services")
    parser.addoption(
        "--lagging", type=int, nargs="?", const=10_000, help="eventually consistent reads miss this many last writes"
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"functional tests on: {config.getoption('engine')}; client: {config.getoption('client')}"


def pytest_configure(config: pytest.Config) -> None:
    os.environ["AWS_CLIENT"] = config.getoption("client")
    from tests.support import permissions  # only after the environment is set

    config.pluginmanager.register(permissions.Run())
    # Each session would read the services' models again, which takes a tenth of a second for each client.
    botocore.session.create_loader = cache(botocore.session.create_loader)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the tests that may take longest to the front, so that no process is left with one at the end."""
    timeouts = {item: marker.args[0] for item in items if (marker := item.get_closest_marker("timeout"))}
    items.sort(key=lambda item: -timeouts.get(item, 0))


@pytest.fixture(scope="session", autouse=True)
def _lagging(pytestconfig: pytest.Config) -> Iterator[None]:
    from tests.support.lagging import lagging_tables  # only after the environment is set

    with lagging_tables(pytestconfig.getoption("lagging")):
        yield
