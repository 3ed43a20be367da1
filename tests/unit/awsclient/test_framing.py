"""Where a response ends is never a guess, and no response fills the memory."""

import threading

import pytest

from awsclient import connection
from awsclient.connection import Connections
from awsclient.endpoints import parse_url
from awsclient.errors import NoAnswer, StaleConnection
from tests.support.each import each
from tests.support.scripted_server import Conversation, answer, raw, scripted_server

REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"content-length: 2\r\n"
BODY = b"\r\n{}"
CHUNKED = b"transfer-encoding: chunked\r\n"
CHUNKS = b"\r\n2\r\n{}\r\n0\r\n\r\n"


def cases(responses: dict[str, bytes]):
    return each("response", responses.values(), ids=responses)


class TestAccepted:
    @cases(
        {
            "a list of equal lengths": OK + b"content-length: 2, 2\r\n" + BODY,
            "equal lengths": OK + LENGTH + LENGTH + BODY,
            "no reason": b"HTTP/1.1 200\r\n" + LENGTH + BODY,
            "unusual headers": OK + b"x:\t\xff \r\ny:\r\nContent-Length:2 \r\n" + BODY,
            "many headers": OK + b"x: 1\r\n" * 99 + LENGTH + BODY,
            "chunks": OK + b"Transfer-Encoding: Chunked\r\n\r\n02 ;a=b\r\n{}\r\n0\r\nx: 1\r\n\r\n",
            "after an interim response": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH + BODY,
        }
    )
    def test_a_response_with_one_end_is_read_and_its_connection_kept(self, response):
        with scripted_server(raw(response)) as server:
            connections = Connections(parse_url(server.url))
            assert [connections.exchange(REQUEST).body for _ in range(2)] == [b"{}", b"{}"]
            assert server.connections == 1

    def test_a_response_without_content_has_no_body(self):
        for status in (b"204 No Content", b"304 Not Modified"):
            with scripted_server(raw(b"HTTP/1.1 " + status + b"\r\n" + LENGTH + b"\r\n")) as server:
                assert Connections(parse_url(server.url)).exchange(REQUEST).body == b""


class TestRefused:
    @cases(
        {
            "two lengths": OK + LENGTH + b"content-length: 9\r\n" + BODY,
            "a list of two lengths": OK + b"content-length: 2, 9\r\n" + BODY,
            "a list with an empty length": OK + b"content-length: 2,\r\n" + BODY,
            "a sign": OK + b"content-length: +2\r\n" + BODY,
            "white space that isn't HTTP's": OK + b"content-length: 2\xa0\r\n" + BODY,
            "no length": OK + b"content-length:\r\n" + BODY,
            "a long length": OK + b"content-length: " + b"0" * 5_000 + b"2\r\n" + BODY,
            "a space before the colon": OK + b"content-length : 2\r\n" + BODY,
            "a length and chunks": OK + LENGTH + CHUNKED + CHUNKS,
            "another encoding": OK + b"transfer-encoding: gzip, chunked\r\n" + CHUNKS,
            "an unknown encoding": OK + b"transfer-encoding: xchunked\r\n" + CHUNKS,
            "an old encoding": OK + b"transfer-encoding: identity\r\n" + LENGTH + BODY,
            "chunks of chunks": OK + CHUNKED + CHUNKED + CHUNKS,
            "chunks of HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + CHUNKED + CHUNKS,
            "a chunk's size with a prefix": OK + CHUNKED + b"\r\n0x2\r\n{}\r\n0\r\n\r\n",
            "a space before a chunk's size": OK + CHUNKED + b"\r\n 2\r\n{}\r\n0\r\n\r\n",
            "a space after a chunk's size": OK + CHUNKED + b"\r\n2 \r\n{}\r\n0\r\n\r\n",
            "a line feed in a chunk's extension": OK + CHUNKED + b"\r\n2;\nx\r\n{}\r\n0\r\n\r\n",
            "no size of a chunk": OK + CHUNKED + b"\r\n\r\n{}\r\n0\r\n\r\n",
            "a chunk longer than its size": OK + CHUNKED + b"\r\n2\r\n{}x\r\n0\r\n\r\n",
            "a chunk without an end": OK + CHUNKED + b"\r\n2\r\n{}0\r\n\r\n\r\n",
            "chunks with bare line feeds": OK + CHUNKED + b"\r\n2\n{}\n0\n\r\n",
            "a malformed trailer": OK + CHUNKED + b"\r\n2\r\n{}\r\n0\r\na\nb: 1\r\n\r\n",
            "a bare line feed": OK + b"x: 1\n" + LENGTH + BODY,
            "a bare carriage return": OK + b"x: 1\r\r" + LENGTH + BODY,
            "a NUL": OK + b"x: \0\r\n" + LENGTH + BODY,
            "a folded line": OK + b"x: 1\r\n content-length: 9\r\n" + LENGTH + BODY,
            "a header without a colon": OK + b"x\r\n" + LENGTH + BODY,
            "a header without a name": OK + b": 1\r\n" + LENGTH + BODY,
            "too many headers": OK + b"x: 1\r\n" * 100 + LENGTH + BODY,
            "too long headers": OK + b"x: " + b"y" * 65_600 + b"\r\n" + LENGTH + BODY,
            "a status with a sign": b"HTTP/1.1 +20 OK\r\n" + LENGTH + BODY,
            "a long status": b"HTTP/1.1 2000 OK\r\n" + LENGTH + BODY,
            "two spaces before the status": b"HTTP/1.1  200 OK\r\n" + LENGTH + BODY,
            "a malformed version": b"HTTP/1.1x 200 OK\r\n" + LENGTH + BODY,
            "an empty line before the status": b"\r\n" + OK + LENGTH + BODY,
        }
    )
    def test_a_malformed_response_is_none_and_closes_its_connection(self, response):
        with scripted_server(answer({}), raw(response), answer({})) as server:
            connections = Connections(parse_url(server.url))
            connections.exchange(REQUEST)
            with pytest.raises(NoAnswer, match="_Malformed") as raised:
                connections.exchange(REQUEST)
            # Otherwise the request would be repeated as if it had not been sent.
            assert not isinstance(raised.value, StaleConnection)
            assert connections._idle == []
            assert connections.exchange(REQUEST).body == b"{}"
            assert server.connections == 2


class TestSize:
    @each(
        ("head", "rest"),
        [
            pytest.param(OK + b"content-length: 200000\r\n\r\n", b"", id="by its length"),
            pytest.param(OK + b"\r\n", b"x" * 1_000, id="until the connection ends"),
            pytest.param(OK + CHUNKED + b"\r\n30d40\r\n", b"", id="in one chunk"),
            pytest.param(OK + CHUNKED + b"\r\n", b"1;" + b"x" * 1_000 + b"\r\nx\r\n", id="in extensions of chunks"),
            pytest.param(OK + CHUNKED + b"\r\n0\r\n", b"x: 1\r\n" * 100, id="in trailers"),
            pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="before the response"),
        ],
    )
    def test_a_response_that_is_too_large_ends_while_it_is_read(self, head, rest, monkeypatch):
        monkeypatch.setattr(connection, "_MOST_BYTES", 100_000)
        closed = threading.Event()

        def endless(conversation: Conversation) -> bool:
            try:
                conversation.connection.sendall(head)
                while rest:
                    conversation.connection.sendall(rest)
                if conversation.connection.recv(1) == b"":
                    closed.set()
            except OSError:
                closed.set()
            return False

        with scripted_server(answer({}), endless) as server:
            connections = Connections(parse_url(server.url))
            connections.exchange(REQUEST)
            with pytest.raises(NoAnswer, match="_Malformed") as raised:
                connections.exchange(REQUEST)
            assert not isinstance(raised.value, StaleConnection)
            assert connections._idle == []
            assert closed.wait(10)

    def test_the_largest_response_of_the_table_is_read(self):
        """16 MB of items, twice as long in JSON."""
        body = b'{"Responses": {"t": [{"S": "' + b"\\n" * 16 * 1024 * 1024 + b'"}]}}'
        with scripted_server(answer(body)) as server:
            assert Connections(parse_url(server.url)).exchange(REQUEST).body == body

    def test_the_size_limit_applies_to_each_response(self, monkeypatch):
        monkeypatch.setattr(connection, "_MOST_BYTES", 1_000)
        with scripted_server(answer(b"x" * 800)) as server:
            connections = Connections(parse_url(server.url))
            assert [len(connections.exchange(REQUEST).body) for _ in range(3)] == [800] * 3
