"""Checks of the GitHub App for the operator: its key, its installations, and the repositories it can access."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from controlplane.core import clock
from controlplane.github import client, errors
from controlplane.github.app_auth import READ_CODE, WRITE_ISSUES
from controlplane.github.client import App, Repository
from ops.errors import NotFound, Refused

NEEDED = dict(READ_CODE + WRITE_ISSUES)
_LEVELS = {"read": 1, "write": 2, "admin": 3}


class Seen(NamedTuple):
    """A repository, and the App installation that can access it."""

    installation_id: int
    repository: Repository


def get_app() -> App:
    """Returns the App. Raises Refused if it lacks a required permission or GitHub rejects the call."""
    with _explained():
        app = client.get_app()
    missing = [
        f"{name} {level}"
        for name, level in NEEDED.items()
        if _LEVELS.get(app.permissions.get(name, ""), 0) < _LEVELS[level]
    ]
    if missing:
        raise Refused(
            f"The App {app.name} doesn't request {', '.join(missing)}. Change its permissions at {app.html_url}. "
            "The owners of its installations must then accept them."
        )
    return app


def look_at(owner: str, name: str) -> Seen:
    """Returns the repository as GitHub reports it. Raises NotFound if no installation can access it; Refused."""
    with _explained():
        installation_id = client.find_installation(owner, name)
        return Seen(installation_id, client.connect(installation_id).get_repository(owner, name))


def check_issues(seen: Seen) -> None:
    """Lists issues with a token that can write them. Raises Refused if the installation lacks that permission."""
    with _explained():
        host = client.connect(seen.installation_id)
        next(host.list_issues_since(seen.repository.owner, seen.repository.name, clock.now()), None)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except errors.AppNotConfigured:
        raise Refused(
            "Nothing says which GitHub App to sign as. Deploy with its id in the parameter GithubAppId, and name the "
            "stack by --stack. Without a stack: GITHUB_APP_ID, and GITHUB_APP_SECRET_ARN or "
            "GITHUB_APP_PRIVATE_KEY_FILE."
        ) from None
    except errors.AppKeyUnreadable as error:
        raise Refused(
            f"The App's private key cannot be read ({error.context.get('reason')}). It is the PEM file that GitHub "
            "gave you, put whole into the secret GithubAppKey."
        ) from None
    except (errors.RepositoryGone, errors.InvalidName):
        raise NotFound(
            "The App isn't installed on that repository, or the repository doesn't exist. Its owner must install the "
            "App and select the repository."
        ) from None
    except errors.AccessLost:
        needed = ", ".join(f"{name} {level}" for name, level in NEEDED.items())
        raise Refused(
            f"The installation is suspended, or does not grant what scans and issues need: {needed}. Its owner agrees "
            "to new permissions in GitHub's settings."
        ) from None
    except errors.Refused as refusal:
        if refusal.status == 401:
            raise Refused("GitHub does not take the signature: the App's id and the private key are of two.") from None
        raise Refused(f"GitHub answered {refusal.status}.") from None
    except errors.RateLimitedByHost as limited:
        raise Refused(f"GitHub takes no more for now: try again in {limited.retry_after_seconds} s.") from None
    except errors.CodeHostError:
        raise Refused("GitHub gave no usable answer in time. Try again later.") from None
