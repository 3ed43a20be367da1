"""Releases: named by `prepare`, kept by `publish`, and deployed, or rolled back to, by `deploy`.

`publish` keeps the artifacts and the packaged template of a release in the bucket that SAM manages, under the release's
number. Nothing replaces them, so `deploy` deploys exactly what was built then, without a build. Runs in SAM's
environment, except for `prepare`.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_NUMBER = re.compile(r"\d+\.\d+\.\d+")
_PROJECT_VERSION = re.compile(r'^(version = )"([^"]+)"$', re.MULTILINE)
# The npm package has the project's version.
_PACKAGE, _PACKAGE_VERSION = "clients/typescript/package.json", re.compile(r'^(  "version": )"([^"]+)"', re.MULTILINE)
_UNRELEASED = "## Unreleased\n"
_NAMED = re.compile(r"^## (\d+\.\d+\.\d+) \(", re.MULTILINE)
# The stack of the bucket that `resolve_s3` makes SAM create, and where artifacts are in it.
_BUCKET_STACK = "aws-sam-cli-managed-default"
_PREFIX = "assent"


class Refused(Exception):
    """The release can't be made. The argument says why."""


def prepare(root: Path, version: str, day: str) -> None:
    """Numbers the unreleased changes, commits that, and tags the commit. Raises Refused, and then changes nothing."""
    changelog = root / "CHANGELOG.md"
    if not _NUMBER.fullmatch(version):
        raise Refused("A version has three numbers, such as 1.2.0.")
    if _parts(version) <= _parts(current_version(root)):
        raise Refused(f"{version} isn't newer than {current_version(root)}.")
    if git(root, "status", "--porcelain"):
        raise Refused("Commit or discard your changes first.")
    if git(root, "tag", "--list", f"v{version}"):
        raise Refused(f"There is already a tag v{version}.")
    before, _, after = changelog.read_text().partition(_UNRELEASED)
    news, found, older = after.partition("\n## ")
    if not news.strip():
        raise Refused(f"{changelog.name} has nothing under Unreleased.")
    changelog.write_text(f"{before}{_UNRELEASED}\n## {version} ({day})\n{news}{found}{older}")
    for name, pattern in (("pyproject.toml", _PROJECT_VERSION), (_PACKAGE, _PACKAGE_VERSION)):
        (root / name).write_text(pattern.sub(rf'\g<1>"{version}"', (root / name).read_text(), count=1))
    git(root, "commit", "--quiet", "--all", "--message", f"release: {version}")
    git(root, "tag", "--annotate", f"v{version}", "--message", f"{version}\n\n{news.strip()}", "--cleanup=verbatim")


def publish(root: Path, template: Path) -> str:
    """Keeps the build of the release. Returns where its template is. Raises Refused if it was published before."""
    version = current_version(root)
    if git(root, "rev-parse", "HEAD") != commit_of(root, version) or git(root, "status", "--porcelain"):
        raise Refused(f"Check out v{version}, and build it, so that what is published is what was released.")
    packaged = template.with_name("packaged.yaml")
    sam(
        "package", "--template-file", str(template), "--output-template-file", str(packaged),
        "--resolve-s3", "--s3-prefix", _folder(version),
    )  # fmt: skip
    bucket, key = _bucket(), _template_key(version)
    store = _client("s3")
    try:
        store.put_object(Bucket=bucket, Key=key, Body=packaged.read_bytes(), IfNoneMatch="*")
    except store.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "PreconditionFailed":
            raise
        raise Refused(f"{version} has been published.") from None
    return f"s3://{bucket}/{key}"


def deploy(version: str, template: Path, options: Sequence[str]) -> None:
    """Deploys a published release with these options of `sam deploy`. Raises Refused without it."""
    store, bucket = _client("s3"), _bucket()
    try:
        content: bytes = store.get_object(Bucket=bucket, Key=_template_key(version))["Body"].read()
    except store.exceptions.NoSuchKey:
        raise Refused(f"{bucket} has no release {version}: `make publish` wasn't run for it.") from None
    template.parent.mkdir(parents=True, exist_ok=True)
    template.write_bytes(content)
    sam("deploy", "--template-file", str(template), *options)


def commit_of(root: Path, version: str) -> str | None:
    """Returns the commit that named the release in CHANGELOG.md, which no tag has to mark. None in a shallow clone.

    Raises Refused if no commit named it.
    """
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        return None
    commit = git(root, "log", "-1", "--format=%H", f"-S## {version} (", "--", "CHANGELOG.md")
    if not commit:
        raise Refused(f"No commit named {version} in CHANGELOG.md.")
    return commit


def last_release(root: Path) -> tuple[str, str] | None:
    """Returns number and commit of the release that an upgrade to the working tree starts from.

    For an unchanged checkout of a release, it is the release before. None in a shallow clone, or for the first release.
    """
    checked_out = None if git(root, "status", "--porcelain") else git(root, "rev-parse", "HEAD")
    for version in _NAMED.findall((root / "CHANGELOG.md").read_text()):
        commit = commit_of(root, version)
        if commit is None:
            return None
        if commit != checked_out:
            return version, commit
    return None


def current_version(root: Path) -> str:
    found = _PROJECT_VERSION.search((root / "pyproject.toml").read_text())
    if found is None:
        raise Refused("pyproject.toml has no version.")
    return found[2]


def sam(*arguments: str) -> None:
    """Runs SAM of this environment. Raises Refused if it fails; it has said why.

    SAM would look for samconfig.toml in the template's folder.
    """
    command = [str(Path(sys.executable).with_name("sam")), *arguments, "--config-file", str(ROOT / "samconfig.toml")]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:  # noqa: S603
        raise Refused(f"sam {arguments[0]} failed.")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _folder(version: str) -> str:
    return f"{_PREFIX}/releases/{version}"


def _template_key(version: str) -> str:
    return f"{_folder(version)}/template.yaml"


def _bucket() -> str:
    """Returns the bucket that SAM manages. Raises Refused if it doesn't exist yet."""
    stacks = _client("cloudformation")
    try:
        (found,) = stacks.describe_stacks(StackName=_BUCKET_STACK)["Stacks"]
    except stacks.exceptions.ClientError:
        raise Refused("This account and region have no artifact bucket: nothing has been published.") from None
    outputs: dict[str, str] = {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}
    return outputs["SourceBucket"]


def _client(service: str) -> Any:
    import boto3  # noqa: PLC0415 (`prepare` doesn't need it)

    return boto3.client(service)


def git(root: Path, *arguments: str) -> str:
    """Returns the output of git. Raises Refused."""
    command = ["git", *arguments]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        raise Refused(f"git {arguments[0]}: {result.stderr.strip()}")
    return result.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.releases", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="name, commit, and tag the next release").add_argument("version")
    commands.add_parser("publish", help="keep the build of the release that is checked out")
    deploying = commands.add_parser("deploy", help="deploy a published release, followed by options of sam deploy")
    deploying.add_argument("version")
    options, more = parser.parse_known_args(arguments)
    build = ROOT / ".aws-sam"
    try:
        if options.command == "prepare":
            prepare(ROOT, options.version, f"{datetime.now(UTC):%Y-%m-%d}")
            print(f"Tagged v{options.version}. Push it with `git push --follow-tags` once .ci/run has passed.")
        elif options.command == "publish":
            print(publish(ROOT, build / "build" / "template.yaml"))
        else:
            deploy(options.version, build / "releases" / f"{options.version}.yaml", more)
    except Refused as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    os.environ.setdefault("SAM_CLI_TELEMETRY", "0")
    sys.exit(main())
