"""Models the template's front door: CloudFront's and its two functions' changes of requests and responses.

The functions are JavaScript in template.yaml. A test runs that JavaScript and compares it with this.
"""

from collections.abc import Callable, Iterable

from controlplane.platform.http.app import STATUS_HEADER
from controlplane.platform.http.client_address import ADDRESS_HEADER, SECRET_HEADER
from local.gateway import REMAPPED_PREFIX, Request, Response

_CHALLENGE = "www-authenticate"
# The caller's address for the gateway: one of CloudFront's.
CLOUDFRONT_ADDRESS = "130.176.0.10"


class FrontDoor:
    """The front door of a gateway, to which it proves itself with the secret. respond: the gateway's."""

    def __init__(self, respond: Callable[[Request], Response], secret: str) -> None:
        self._respond = respond
        self._secret = secret

    def respond(self, request: Request) -> Response:
        """Returns the response to a client's request."""
        headers = request_headers(request.headers, request.source_ip, self._secret)
        response = self._respond(request._replace(headers=headers, source_ip=CLOUDFRONT_ADDRESS))
        status, restored = restore_challenge(response.status, response.headers)
        return response._replace(status=status, headers=restored)


def request_headers(headers: Iterable[tuple[str, str]], address: str, secret: str) -> list[tuple[str, str]]:
    """Returns the headers that the gateway gets for a request from the address."""
    own = {ADDRESS_HEADER: address, SECRET_HEADER: secret}
    return [(name, value) for name, value in headers if name.lower() not in own] + list(own.items())


def restore_challenge(status: int, headers: Iterable[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
    """Returns the status and the headers, with lowercase names, that the client gets for a response of the gateway.

    As in CloudFront, a response with a status of 400 or more isn't changed.
    """
    given = list(headers)
    if status >= 400:
        return status, given
    named = dict(given)
    kept = [(name, value) for name, value in given if name != STATUS_HEADER]
    if (challenge := named.get(REMAPPED_PREFIX + _CHALLENGE)) is not None:
        kept.append((_CHALLENGE, challenge))
    return int(named.get(STATUS_HEADER, status)), kept
