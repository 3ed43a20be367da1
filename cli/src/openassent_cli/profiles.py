"""Profiles: which service and organization a command talks to. They are kept in the user's configuration folder.

The folder is ASSENT_CONFIG_DIR or, if that isn't set, the platform's. No credential is in the file.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from openassent_cli.problems import Exit, Problem

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@dataclass(frozen=True)
class Profile:
    """One profile.

    organization: an ID or slug, or None for the active one of the credential. dashboard: the address of the pages.
    """

    base_url: str
    organization: str | None = None
    dashboard: str | None = None


def folder() -> Path:
    """Returns the configuration folder, and creates it for its user alone."""
    import platformdirs  # noqa: PLC0415 (see `locked`)

    path = Path(os.environ.get("ASSENT_CONFIG_DIR") or platformdirs.user_config_dir("assent", appauthor=False))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds the lock of that name against all other commands of this user."""
    from filelock import FileLock  # noqa: PLC0415 (takes long to import, and the local scan doesn't need it)

    with FileLock(folder() / f"{name}.lock", mode=0o600):
        yield


def write_private(path: Path, content: str) -> None:
    """Replaces a file at once, readable by its owner only."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # creates it with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def checked_name(name: str) -> str:
    """Returns the name of a profile. Raises Problem if it is invalid."""
    if not _NAME.match(name):
        message = f"{name!r} isn't the name of a profile."
        raise Problem(message, "Use letters, digits, periods, hyphens, and underscores, 64 at most.", Exit.USAGE)
    return name


def all_profiles() -> dict[str, Profile]:
    """Returns all profiles by name. Raises Problem if the file can't be read."""
    return _read()[1]


def current() -> str:
    """Returns the name of the profile that commands use by default."""
    return _read()[0]


def find(name: str) -> Profile | None:
    return all_profiles().get(name)


def save(name: str, profile: Profile) -> None:
    """Adds or replaces a profile. The first one is current from then on."""
    with locked("profiles"):
        chosen, profiles = _read()
        if not profiles:
            chosen = name
        _write(chosen, profiles | {name: profile})


def use(name: str) -> None:
    """Makes a profile the current one. Raises Problem if it doesn't exist."""
    with locked("profiles"):
        _, profiles = _read()
        if name not in profiles:
            raise Problem(f"There is no profile {name}.", f"Run `assent login --profile {name}`.", Exit.NOT_FOUND)
        _write(name, profiles)


def choose_organization(name: str, organization: str | None) -> None:
    """Sets the organization that the profile's commands act in."""
    with locked("profiles"):
        chosen, profiles = _read()
        if name in profiles:
            _write(chosen, profiles | {name: replace(profiles[name], organization=organization)})


def remove(name: str) -> None:
    with locked("profiles"):
        chosen, profiles = _read()
        if profiles.pop(name, None):
            _write(chosen if chosen in profiles else next(iter(profiles), DEFAULT), profiles)


def _path() -> Path:
    return folder() / "profiles.json"


def _read() -> tuple[str, dict[str, Profile]]:
    try:
        text = _path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return DEFAULT, {}
    from openassent import _settings  # noqa: PLC0415 (see `locked`)

    try:
        document = json.loads(text)
        return str(document.get("current", DEFAULT)), {
            name: Profile(
                _settings.base_address(it["base_url"]),
                it.get("organization") and str(it["organization"]),
                it.get("dashboard") and str(it["dashboard"]),
            )
            for name, it in document["profiles"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # InvalidArgument is a ValueError
        raise Problem(f"{_path()} can't be read.", "Correct or remove the file, and sign in again.") from None


def _write(chosen: str, profiles: dict[str, Profile]) -> None:
    document = {"current": chosen, "profiles": {name: asdict(profile) for name, profile in sorted(profiles.items())}}
    write_private(_path(), json.dumps(document, indent=2) + "\n")
