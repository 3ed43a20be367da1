"""Routes of `consent_instances`: the public configuration. It needs no credential, and has nothing personal."""

import hashlib
from typing import Annotated, Any

from fastapi import Header, Path, Response

from consent_instances import service
from consent_instances.schemas import InstanceConfiguration
from controlplane.access.anonymous import AnonymousCaller
from controlplane.platform.http import envelope
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.callers import CallerRequirements
from controlplane.platform.http.envelope import Answer
from controlplane.platform.http.negotiation import IfNoneMatch, is_current
from controlplane.platform.http.reader import RequestReader
from controlplane.platform.http.route import refuses

router = ControlRouter(tags=["Consent"])

# Browsers and the front door ask again after a minute, so a change takes effect within that.
_CACHE_CONTROL = "public, max-age=60"
# The gateway or the front door compresses it. Both keep the ETag, or make it a weak one.
_VARY = "Origin, Accept-Encoding"
_PATH = "/v1/consent-instances/{instanceId}/configuration"
_VERSION: dict[str, Any] = {"headers": {"ETag": {}}}


class CountedInMemory(CallerRequirements[AnonymousCaller]):
    """Limits the client's address without a write, unlike `Anonymous`."""

    def identify(self, request: RequestReader) -> AnonymousCaller:
        return AnonymousCaller(request.address)

    def check(self, caller: AnonymousCaller) -> None:
        service.count_address(caller.address)


Visitor = Annotated[AnonymousCaller, CountedInMemory()]
InstanceId = Annotated[
    str,
    Path(
        alias="instanceId",
        description="The `instanceId` of a project's consent instance.",
        examples=["ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    ),
]
# Browsers set it. It isn't a parameter that a client chooses.
Origin = Annotated[str, Header(include_in_schema=False)]


@router.get(
    _PATH,
    summary="Get the configuration of a consent instance",
    responses={200: _VERSION, 304: {**_VERSION, "description": "The client's copy is current."}},
)
@refuses(service.UnknownInstance)
async def get_configuration(
    _: Visitor, instance_id: InstanceId, if_none_match: IfNoneMatch = None, origin: Origin = ""
) -> Answer[InstanceConfiguration]:
    """Returns a banner's configuration: the origins it may run on, its branding, and the vendors with their decisions.

    Public, and cacheable for a minute. Only scripts on the project's websites can read it in a browser: for these, the
    response has `Access-Control-Allow-Origin`. The plan decides on the branding, so a downgrade can change it.
    """
    project = service.get_configured(instance_id)
    configuration = InstanceConfiguration.of(project)
    etag = f'"{hashlib.sha256(envelope.success(configuration)).hexdigest()[:32]}"'
    headers = {**_cors(service.allows(project, origin), origin), "Cache-Control": _CACHE_CONTROL, "ETag": etag}
    return Answer(configuration, 304 if is_current(if_none_match, etag) else None, headers)


@router.options(_PATH, include_in_schema=False)
async def preflight_configuration(_: Visitor, instance_id: InstanceId, origin: Origin = "") -> Response:
    """Allows a script on the project's websites to send headers, such as If-None-Match."""
    is_allowed = service.allows(service.get_configured(instance_id), origin)
    allowed = {"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Headers": "Content-Type, If-None-Match"}
    return Response(status_code=204, headers={**_cors(is_allowed, origin), **(allowed if is_allowed else {})})


def _cors(is_allowed: bool, origin: str) -> dict[str, str]:
    """Returns the headers that let a script of that origin read the response. Caches keep one for each origin."""
    if not is_allowed:
        return {"Vary": _VARY}
    return {
        "Vary": _VARY,
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": "ETag, X-Request-Id",
    }
