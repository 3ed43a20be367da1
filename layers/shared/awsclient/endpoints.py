"""The address of a service: from the environment, or by region and partition."""

import os
import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from awsclient.errors import Misconfigured

# How a partition's regions begin, with the domains of its ordinary and its dual-stack endpoints.
_PARTITIONS = (
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("", "amazonaws.com", "api.aws"),
)
_US_GOV = "us-gov-"
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
# The advice for unsupported configurations.
_INSTEAD = "Set AWS_CLIENT=boto3 to use boto3, which supports it."


class Proxy(NamedTuple):
    """An HTTP proxy. `userinfo` is its credentials, as in a URL but decoded, or empty."""

    host: str
    port: int
    userinfo: str = ""


class Endpoint(NamedTuple):
    """Where connections lead. `host_header` has the port unless it is the scheme's own."""

    is_tls: bool
    host: str
    port: int
    path: str = "/"
    proxy: Proxy | None = None

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"


def region() -> str:
    """Returns the region's name. Raises Misconfigured."""
    name = os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or ""
    if not _LABEL.fullmatch(name):
        raise Misconfigured("AWS_REGION doesn't name a region.")
    return name


def find_endpoint(service: str, url: str | None = None) -> Endpoint:
    """Returns the endpoint of a service, at the URL if one is given. Raises Misconfigured."""
    is_fips, is_dual_stack = _is_on("AWS_USE_FIPS_ENDPOINT"), _is_on("AWS_USE_DUALSTACK_ENDPOINT")
    url = url or _configured_url(service)
    if url is None:
        if os.environ.get("AWS_ACCOUNT_ID_ENDPOINT_MODE", "").lower() == "required":
            raise Misconfigured(f"AWS_ACCOUNT_ID_ENDPOINT_MODE=required asks for an account's own endpoint. {_INSTEAD}")
        url = f"https://{_regional_host(service, region(), is_fips=is_fips, is_dual_stack=is_dual_stack)}"
    elif is_fips or is_dual_stack:
        raise Misconfigured("FIPS and dual-stack endpoints can't be combined with an endpoint URL. Remove one of them.")
    endpoint = parse_url(url)
    return endpoint._replace(proxy=_find_proxy(endpoint))


def parse_url(url: str) -> Endpoint:
    """Returns the endpoint at a URL, without a proxy. Raises Misconfigured."""
    parts = _split(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.username:
        raise Misconfigured("An endpoint URL must consist of http(s), a host, and optionally a port and a path.")
    return Endpoint(parts.scheme == "https", parts.hostname, parts.port or _PORTS[parts.scheme], parts.path or "/")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises if it isn't a number)
    except ValueError:
        raise Misconfigured("An endpoint or proxy URL can't be parsed.") from None
    return parts


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").lower() == "true"


def _configured_url(service: str) -> str | None:
    if _is_on("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        return None
    return os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or os.environ.get("AWS_ENDPOINT_URL") or None


def _regional_host(service: str, name: str, *, is_fips: bool, is_dual_stack: bool) -> str:
    ordinary, dual_stack = next((one, two) for start, one, two in _PARTITIONS if name.startswith(start))
    if not is_dual_stack and name.startswith(_US_GOV):
        is_fips = False  # ordinary endpoints of this partition are FIPS endpoints
    return f"{service}{'-fips' if is_fips else ''}.{name}.{dual_stack if is_dual_stack else ordinary}"


def _find_proxy(endpoint: Endpoint) -> Proxy | None:
    """Returns the proxy of HTTPS_PROXY unless NO_PROXY exempts the host. Addresses without TLS need none."""
    url = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
    if not url or not endpoint.is_tls or _is_exempt(endpoint.host):
        return None
    parts = _split(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise Misconfigured(f"HTTPS_PROXY must be the URL of a proxy without TLS. {_INSTEAD}")
    userinfo = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return Proxy(parts.hostname, parts.port or _PORTS["http"], userinfo)


def _is_exempt(host: str) -> bool:
    exempt = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    domains = [domain.strip().lstrip(".").lower() for domain in exempt.split(",")]
    return any(domain in {"*", host} or host.endswith(f".{domain}") for domain in domains if domain)
