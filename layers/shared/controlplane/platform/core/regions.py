"""The regions of a deployment: where consent configurations are served. Everything is stored in one AWS region."""

import os
import re
from typing import NamedTuple

# The IDs and labels of AWS's regions. Another one has its own name as both.
_OF_AWS = {
    "eu-central-1": ("eu-central", "Europe (Frankfurt)"),
    "eu-west-1": ("eu-west", "Europe (Ireland)"),
    "us-east-1": ("us-east", "United States (Virginia)"),
    "us-west-2": ("us-west", "United States (Oregon)"),
    "ap-southeast-1": ("ap-southeast", "Asia Pacific (Singapore)"),
    "ap-northeast-1": ("ap-northeast", "Asia Pacific (Tokyo)"),
}
_ENTRY = re.compile(
    r"(?P<id>[a-z0-9][a-z0-9-]{0,39})\|(?P<label>[^|;]{1,80})(?:\|(?P<runtime_url>https?://[^\s|;?#]+))?"
)


class Region(NamedTuple):
    """A region that projects can be created in. runtime_url: of a consent runtime; None: this deployment serves it."""

    id: str
    label: str
    runtime_url: str | None = None


def aws_region() -> str:
    """Returns the AWS region in which everything is stored."""
    return os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "local"


def parse_regions(text: object) -> object:
    """Parses `id|label` or `id|label|https://address` of each region, separated by semicolons.

    An empty text is the deployment's own AWS region. Raises ValueError for another form, or if an ID occurs twice.
    """
    if not isinstance(text, str):
        return text
    if not text:
        return (Region(*_OF_AWS.get(aws_region(), (aws_region(), aws_region()))),)
    regions = []
    for entry in text.strip("; ").split(";"):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise ValueError("write each region as id|label or id|label|https://address, separated by semicolons")
        url = match["runtime_url"]
        regions.append(Region(match["id"], match["label"].strip(), url and url.rstrip("/")))
    if len({region.id for region in regions}) < len(regions):
        raise ValueError("each region has an ID of its own")
    return tuple(regions)
