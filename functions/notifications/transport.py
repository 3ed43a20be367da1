"""Requests to endpoints, whose addresses strangers choose: only public ones, no redirects, and bounded in every way.

The host is resolved here, and the connection goes to an address that was checked, so a name that resolves to something
else a moment later changes nothing. Nothing of a response is read except its status.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, override

from controlplane.notify import webhook_urls
from controlplane.notify.webhook_urls import Target, UnacceptableUrl
from controlplane.platform.core.settings import settings

# For everything: resolving, connecting, TLS, the request, and the status line and headers of the response.
_TOTAL_SECONDS = 5
# Of these, for resolving and for each address, so that one that hangs leaves time for the next one.
_RESOLVE_SECONDS = 2
_CONNECT_SECONDS = 2
_MOST_ADDRESSES = 2

type Resolve = Callable[[str, int], list[str]]


class NotDelivered(Exception):
    """There is no response: it wasn't sent, or nothing answered in time. `reason` is one of the documented errors."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Returns the status of the response to a request. Ends in 5 seconds, whatever takes long. Raises NotDelivered."""
    try:
        target = webhook_urls.parse(url)
    except UnacceptableUrl:
        raise NotDelivered("address") from None
    connection = _Connection(target)
    watchdog = threading.Timer(_TOTAL_SECONDS, connection.abort)
    watchdog.daemon = True
    try:
        watchdog.start()
        connection.connect()
        connection.request("POST", target.path, body, {**_headers(target), **headers})
        status = connection.getresponse().status
    except ssl.SSLError:
        raise NotDelivered("timeout" if connection.is_aborted else "tls") from None
    except TimeoutError:
        raise NotDelivered("timeout") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise NotDelivered("timeout" if connection.is_aborted else "connection") from None
    finally:
        watchdog.cancel()
        connection.close()
    if connection.is_aborted:  # within the headers, which then seem to end
        raise NotDelivered("timeout")
    return status


def _headers(target: Target) -> dict[str, str]:
    return {
        "Host": target.authority,
        "Content-Type": "application/json",
        "User-Agent": f"{settings.service_brand}-webhooks/1",
        "Connection": "close",
    }


class _Connection(http.client.HTTPConnection):
    """A connection to an address of the host that was checked."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.host, target.port)
        self._target = target
        self._ends_at = time.monotonic() + _TOTAL_SECONDS
        self.is_aborted = False

    @override
    def connect(self) -> None:
        """Connects, with TLS if the URL says so. Raises OSError, NotDelivered."""
        failure: OSError | None = None
        for address in checked_addresses(self._target.host, self._target.port):
            seconds = min(_CONNECT_SECONDS, self._seconds_left())
            try:
                plain = socket.create_connection((address, self._target.port), seconds)
            except OSError as error:
                failure = error
                continue
            self.sock = plain
            plain.settimeout(self._seconds_left())
            self.sock = self._secured(plain)
            # After `sock` is set: either `abort` finds the socket, or the time is up here.
            self.sock.settimeout(self._seconds_left())
            return
        raise failure or NotDelivered("dns")

    def _seconds_left(self) -> float:
        """Returns how long the request may still take. Raises TimeoutError if its time is up."""
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def _secured(self, plain: socket.socket) -> Any:
        if self._target.scheme == "http":
            return plain
        return _tls().wrap_socket(plain, server_hostname=self._target.host)

    def abort(self) -> None:
        """Ends the request from another thread: a response that comes in slowly would never time out by itself."""
        self.is_aborted = True
        if self.sock is not None:
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def checked_addresses(host: str, port: int, resolve: Resolve | None = None) -> list[str]:
    """Returns addresses of the host, at most two. Raises NotDelivered if it has none, or if any of them isn't public.

    One that isn't public is enough to refuse: a public host has no reason to name one.
    """
    found = (resolve or _resolve)(host, port)
    if not found:
        raise NotDelivered("dns")
    if not all(webhook_urls.is_public(address) for address in found):
        raise NotDelivered("address")
    return found[:_MOST_ADDRESSES]


def _resolve(host: str, port: int) -> list[str]:
    """Returns the host's addresses, or an empty list. Raises NotDelivered if the system's resolver takes too long."""
    found: list[str] = []

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(dict.fromkeys(str(info[4][0]) for info in infos))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_RESOLVE_SECONDS)
    if thread.is_alive():
        raise NotDelivered("timeout")
    return found
