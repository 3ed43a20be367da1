"""`assent-ops github`: checks of the GitHub App: its key, its installations, and the repositories it can access."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import typer

from controlplane.code_host.github import client, errors
from controlplane.code_host.github.app_auth import READ_CODE, WRITE_ISSUES
from controlplane.code_host.github.client import App, Repository
from controlplane.code_host.github.reviews import WRITE_CHECKS, WRITE_PULL_REQUESTS
from ops.arguments import new_group, parse_full_name
from ops.output import NotFound, Refused, Result

REQUIRED_PERMISSIONS = dict(READ_CODE + WRITE_ISSUES + WRITE_PULL_REQUESTS + WRITE_CHECKS)
REQUIRED_EVENTS = ("check_run", "issues", "pull_request", "push", "repository")
_OWNER = "Its owner can accept new permissions in GitHub's settings."
_LEVELS = {"read": 1, "write": 2, "admin": 3}

app = new_group("The GitHub App.")


@app.command("check")
def check_app(
    full_name: Annotated[
        str | None,
        typer.Argument(
            metavar="OWNER/NAME", parser=parse_full_name, help="A repository that the App must have access to."
        ),
    ] = None,
) -> Result:
    """Check that the App's id and private key match, and that it has the required permissions and webhook events.

    With a repository, also checks that the App is installed there and that the owner granted the permissions.
    """
    found = get_app()
    document: dict[str, Any] = {
        "appId": found.app_id,
        "name": found.name,
        "url": found.html_url,
        "permissions": [f"{name} {level}" for name, level in sorted(found.permissions.items())],
        "events": sorted(found.events),
    }
    if full_name is None:
        return Result(document)
    owner, _, name = full_name.partition("/")
    check_permissions(owner, name)
    installed = find_repository(owner, name)
    repository = installed.repository
    return Result(
        document
        | {
            "installation": installed.installation_id,
            "repository": f"{repository.owner}/{repository.name}",
            "defaultBranch": repository.default_branch,
            "archived": repository.is_archived,
            "issues": repository.has_issues,
        }
    )


class InstalledRepository(NamedTuple):
    """A repository, and the App installation that can access it."""

    installation_id: int
    repository: Repository


def get_app() -> App:
    """Returns the App. Raises Refused if it lacks a required permission or event, or GitHub rejects the call."""
    with _converted_errors():
        found = client.get_app()
    missing = [
        f"{name} {level}"
        for name, level in REQUIRED_PERMISSIONS.items()
        if _LEVELS.get(found.permissions.get(name, ""), 0) < _LEVELS[level]
    ]
    if missing:
        raise Refused(
            f"The App {found.name} doesn't request {', '.join(missing)}. Change its permissions at {found.html_url}. "
            "The owners of its installations must then accept them."
        )
    if unsubscribed := sorted({*REQUIRED_EVENTS} - found.events):
        raise Refused(
            f"The webhook of the App {found.name} isn't subscribed to {', '.join(unsubscribed)}. Turn it on and add "
            f"these events at {found.html_url}, so that scans start by themselves and inbox items follow their issues."
        )
    return found


def find_repository(owner: str, name: str) -> InstalledRepository:
    """Returns the repository as GitHub reports it. Raises NotFound if no installation can access it; Refused."""
    with _converted_errors():
        installation_id = client.find_installation(owner, name)
        return InstalledRepository(installation_id, client.connect(installation_id).get_repository(owner, name))


def check_permissions(owner: str, name: str) -> None:
    """Requests a token for each purpose. Raises Refused with the permissions that the installation doesn't grant."""
    missing: dict[str, str] = {}
    with _converted_errors():
        host = client.connect(client.find_installation(owner, name))
        for purpose in (READ_CODE, WRITE_ISSUES, WRITE_PULL_REQUESTS, WRITE_CHECKS):
            try:
                host.check_access(owner, name, purpose)
            except errors.AccessLost:
                missing |= dict(purpose)
    missing.pop("metadata", None)  # each App has it, and each purpose names it
    if missing:
        needed = ", ".join(f"{name} {level}" for name, level in missing.items())
        raise Refused(f"The installation is suspended, or doesn't grant {needed}. {_OWNER}")


@contextmanager
def _converted_errors() -> Iterator[None]:
    try:
        yield
    except (errors.RepositoryGone, errors.InvalidName):
        raise NotFound(
            "The App isn't installed on that repository, or the repository doesn't exist. Its owner must install the "
            "App and select the repository."
        ) from None
    except errors.CodeHostError as error:
        raise Refused(_reason(error)) from None


def _reason(error: errors.CodeHostError) -> str:
    match error:
        case errors.AppNotConfigured():
            return (
                "No GitHub App is configured. Deploy with its id in the parameter GithubAppId, and select the stack "
                "with --stack. Without a stack, set GITHUB_APP_ID, and GITHUB_APP_SECRET_ARN or "
                "GITHUB_APP_PRIVATE_KEY_FILE."
            )
        case errors.AppKeyUnreadable():
            return (
                f"The App's private key can't be read ({error.context.get('reason')}). Store the complete PEM file "
                "from GitHub in the secret GithubAppKey."
            )
        case errors.AccessLost():
            needed = ", ".join(f"{name} {level}" for name, level in REQUIRED_PERMISSIONS.items())
            return f"The installation is suspended, or lacks permissions that scans and issues need: {needed}. {_OWNER}"
        case errors.Refused(status=401):
            return "GitHub rejected the signature: the App's id and the private key belong to different Apps."
        case errors.Refused():
            return f"GitHub returned {error.status}."
        case errors.RateLimitedByHost():
            return f"GitHub's rate limit is exceeded. Try again in {error.retry_after_seconds} s."
    return "GitHub didn't respond, or its response was invalid. Try again later."
