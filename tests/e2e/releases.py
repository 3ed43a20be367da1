"""Versions as releases: named and tagged in a clone, published, and deployed from what was published."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import boto3

from tests.e2e.deployment import REGION, ROOT, aws, deploy_options, run

_UNRELEASED = "## Unreleased\n"
_AUTHOR = {f"GIT_{role}_{field}": "ada@example.com" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}


class Releases:
    """A clone of the repository, whose releases are kept in the bucket of one AWS.

    Artifacts that exist are published, because a build of each release would take minutes.
    """

    def __init__(self, clone: Path, endpoint_url: str) -> None:
        self._clone, self._endpoint_url = clone, endpoint_url
        self._templates: dict[str, Path] = {}
        run("git", "clone", "--quiet", "--shared", ROOT, clone)

    def publish(self, version: str, commit: str, template: Path) -> None:
        """Names the commit's version, tags it, and publishes the template and its artifacts."""
        self._templates[version] = template
        run("git", "checkout", "--quiet", run("git", "rev-parse", commit).strip(), folder=self._clone)
        changelog = self._clone / "CHANGELOG.md"
        changelog.write_text(changelog.read_text().replace(_UNRELEASED, f"{_UNRELEASED}\n- A change.\n", 1))
        run("git", "commit", "--quiet", "--all", "--message", "A change", folder=self._clone, **_AUTHOR)
        self._run("prepare", version)
        build = self._clone / ".aws-sam" / "build"
        shutil.rmtree(build, ignore_errors=True)
        build.mkdir(parents=True)
        for artifact in template.parent.iterdir():
            (build / artifact.name).symlink_to(artifact)
        (build / "template.yaml").unlink()
        shutil.copyfile(template, build / "template.yaml")
        self._name_nested_templates(self._run("publish").split()[-1])

    def deploy(self, version: str, parameters: Mapping[str, str]) -> None:
        """Deploys a published release with those of the parameters that it has."""
        self._run("deploy", version, *deploy_options(parameters, self._templates[version]))

    def _name_nested_templates(self, published: str) -> None:
        """Gives the nested templates of a published one AWS's addresses: SAM takes no others for ones in S3."""
        bucket, key = published.removeprefix("s3://").split("/", 1)
        store = boto3.client("s3", endpoint_url=self._endpoint_url, region_name=REGION)
        template = store.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        renamed = template.replace(self._endpoint_url, f"https://s3.{REGION}.amazonaws.com")
        store.put_object(Bucket=bucket, Key=key, Body=renamed.encode())

    def _run(self, *arguments: str) -> str:
        python, variables = ROOT / ".tools" / "sam" / "bin" / "python", _AUTHOR | aws(self._endpoint_url)
        return run(python, "-m", "scripts.releases", *arguments, folder=self._clone, **variables)
