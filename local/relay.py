"""Relays connections, byte for byte, from one local address to another."""

import socket
import threading
from contextlib import suppress
from types import TracebackType

type Address = tuple[str, int]


class Relay:
    """Listens on `source` while the block runs, and passes every connection on to `target`.

    Raises OSError if `source` is taken.
    """

    def __init__(self, source: Address, target: Address) -> None:
        self._listener = socket.create_server(source)
        self._target = target
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Relay":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Wakes the thread that waits for a caller, which would hold on to the port.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def port(self) -> int:
        """Returns the port that it listens on."""
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller: socket.socket) -> None:
        with caller, suppress(OSError), socket.create_connection(self._target) as called:
            back = threading.Thread(target=_pass_on, args=(called, caller), daemon=True)
            back.start()
            _pass_on(caller, called)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Copies until the source closes, then closes the target for writing, or until either side disconnects."""
    with suppress(OSError):
        while block := source.recv(65_536):
            target.sendall(block)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
