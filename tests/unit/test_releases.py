"""Releases are named once, kept as they were built, and deployed from what was kept."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from scripts import releases
from scripts.releases import Refused

_DAY = "2026-11-24"
_BUCKET = "artifacts"
_CHANGELOG = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-10-31)\n\n- Old.\n"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a project whose last release is 0.1.0."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.com")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n\n[other]\nversion = "3.0.0"\n')
    package = tmp_path / "clients" / "typescript" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text('{\n  "name": "openassent",\n  "version": "0.1.0"\n}\n')
    (tmp_path / "CHANGELOG.md").write_text(_CHANGELOG)
    (tmp_path / ".gitignore").write_text("built/\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


class TestPrepare:
    def test_names_what_is_unreleased_and_tags_the_commit(self, root):
        releases.prepare(root, "0.2.0", _DAY)
        changelog = (root / "CHANGELOG.md").read_text()
        named = f"## Unreleased\n\n## 0.2.0 ({_DAY})\n\n- New.\n\n## 0.1.0 (2026-10-31)\n\n- Old.\n"
        assert changelog == f"# Changelog\n\n{named}"
        assert (root / "pyproject.toml").read_text() == '[project]\nversion = "0.2.0"\n\n[other]\nversion = "3.0.0"\n'
        package = json.loads((root / "clients" / "typescript" / "package.json").read_text())
        assert package == {"name": "openassent", "version": "0.2.0"}
        assert git(root, "status", "--porcelain") == ""
        assert git(root, "log", "-1", "--format=%s") == "release: 0.2.0"
        assert git(root, "tag", "--points-at", "HEAD") == "v0.2.0"
        assert git(root, "tag", "--list", "--format=%(contents)", "v0.2.0") == "0.2.0\n\n- New."

    def test_refuses_an_old_or_malformed_version_and_compares_versions_as_numbers(self, root):
        for version, reason in {
            "0.1.0": "isn't newer",
            "0.0.9": "isn't newer",
            "v0.2.0": "three numbers",
            "0.2": "three numbers",
        }.items():
            with pytest.raises(Refused, match=reason):
                releases.prepare(root, version, _DAY)
        assert git(root, "tag") == git(root, "status", "--porcelain") == ""
        releases.prepare(root, "0.10.0", _DAY)
        with pytest.raises(Refused, match="nothing under Unreleased"):
            releases.prepare(root, "0.11.0", _DAY)
        changelog = (root / "CHANGELOG.md").read_text()
        (root / "CHANGELOG.md").write_text(changelog.replace("## Unreleased\n", "## Unreleased\n\n- Newer.\n"))
        git(root, "commit", "--quiet", "--all", "--message", "second")
        with pytest.raises(Refused, match="isn't newer"):
            releases.prepare(root, "0.9.0", _DAY)

    def test_refuses_an_existing_tag_and_a_changed_working_tree(self, root):
        git(root, "tag", "v0.2.0")
        with pytest.raises(Refused, match=r"already a tag v0\.2\.0"):
            releases.prepare(root, "0.2.0", _DAY)
        assert git(root, "status", "--porcelain") == ""
        (root / "pyproject.toml").write_text('version = "0.1.0"\n')
        with pytest.raises(Refused, match="Commit or discard"):
            releases.prepare(root, "0.3.0", _DAY)


class TestCommit:
    def test_a_release_is_the_commit_that_named_it_even_without_its_tag(self, root):
        releases.prepare(root, "0.2.0", _DAY)
        git(root, "tag", "--delete", "v0.2.0")
        named = git(root, "rev-parse", "HEAD")
        (root / "CHANGELOG.md").write_text(_CHANGELOG.replace("- New.", "- Newer.\n\n## 0.2.0 (2026-11-24)\n\n- New."))
        git(root, "commit", "--quiet", "--all", "--message", "second")
        assert releases.commit_of(root, "0.2.0") == named != git(root, "rev-parse", "HEAD")

    def test_a_release_that_was_named_with_other_changes_is_found_and_an_unnamed_one_refused(self, root):
        assert releases.commit_of(root, "0.1.0") == git(root, "rev-parse", "HEAD")
        with pytest.raises(Refused, match=r"No commit named 0\.2\.0"):
            releases.commit_of(root, "0.2.0")


def test_a_clone_without_history_has_no_commit_of_a_release_and_no_last_one(root, tmp_path):
    releases.prepare(root, "0.2.0", _DAY)
    git(root, "clone", "--quiet", "--depth=1", f"file://{root}", str(tmp_path / "clone"))
    assert releases.commit_of(tmp_path / "clone", "0.2.0") is None
    assert releases.last_release(tmp_path / "clone") is None


def test_the_template_is_compared_with_the_release_before_the_commit(root):
    first = git(root, "rev-parse", "HEAD")
    assert releases.last_release(root) is None
    releases.prepare(root, "0.2.0", _DAY)
    assert releases.last_release(root) == ("0.1.0", first)
    released = git(root, "rev-parse", "HEAD")
    # Changes of a release that aren't committed are compared with it, and so is later work.
    (root / "template.yaml").write_text("Resources: {}\n")
    assert releases.last_release(root) == ("0.2.0", released)
    (root / "template.yaml").unlink()
    git(root, "commit", "--quiet", "--allow-empty", "--message", "second")
    assert releases.last_release(root) == ("0.2.0", released)


class Stacks:
    """The stacks of an account: that of the bucket that SAM manages, or none."""

    exceptions = SimpleNamespace(ClientError=ClientError)

    def __init__(self, *names: str) -> None:
        self.names = names

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 (the API's name)
        if StackName not in self.names:
            error = {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")
        return {"Stacks": [{"Outputs": [{"OutputKey": "SourceBucket", "OutputValue": _BUCKET}]}]}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """Runs a simulated S3 with the bucket that SAM manages. Yields the commands of SAM, which only packages."""
    commands: list[tuple[str, ...]] = []

    def sam(*arguments: str) -> None:
        commands.append(arguments)
        if arguments[0] == "package":
            source, target = arguments[2], arguments[4]
            Path(target).write_text(f"packaged: {Path(source).read_text()}")

    monkeypatch.setattr(releases, "sam", sam)
    with mock_aws():
        clients = {"s3": boto3.client("s3"), "cloudformation": Stacks("aws-sam-cli-managed-default")}
        monkeypatch.setattr(releases, "_client", clients.__getitem__)
        clients["s3"].create_bucket(
            Bucket=_BUCKET, CreateBucketConfiguration={"LocationConstraint": os.environ["AWS_REGION"]}
        )
        yield commands


@pytest.fixture
def built(root: Path) -> Path:
    """Tags the release 0.2.0 and writes its build."""
    releases.prepare(root, "0.2.0", _DAY)
    template = root / "built" / "template.yaml"
    template.parent.mkdir()
    template.write_text("0.2.0")
    return template


def test_a_release_is_published_once_without_its_tag_and_deployed_with_the_options(root, built, ran):
    git(root, "tag", "--delete", "v0.2.0")
    assert releases.publish(root, built) == f"s3://{_BUCKET}/assent/releases/0.2.0/template.yaml"
    (command,) = ran
    assert command[-3:] == ("--resolve-s3", "--s3-prefix", "assent/releases/0.2.0")
    built.write_text("another build")
    with pytest.raises(Refused, match=r"0\.2\.0 has been published"):
        releases.publish(root, built)
    found = root / "built" / "releases" / "0.2.0.yaml"
    releases.deploy("0.2.0", found, ["--stack-name", "other"])
    assert found.read_text() == "packaged: 0.2.0"
    assert ran[-1] == ("deploy", "--template-file", str(found), "--stack-name", "other")


def test_what_was_not_released_or_not_published_is_refused(root, built, ran, monkeypatch):
    (root / "new").write_text("")
    for _ in range(2):
        with pytest.raises(Refused, match=r"Check out v0\.2\.0"):
            releases.publish(root, built)
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--allow-empty", "--message", "later")
    with pytest.raises(Refused, match=r"has no release 0\.3\.0"):
        releases.deploy("0.3.0", root / "found.yaml", [])
    monkeypatch.setattr(releases, "_client", lambda _: Stacks())
    with pytest.raises(Refused, match="no artifact bucket"):
        releases.deploy("0.2.0", root / "found.yaml", [])
    assert ran == []
