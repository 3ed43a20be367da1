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


class TestAccepted:
    @each(
        "response",
        [
            pytest.param(OK + b"content-length: 2, 2\r\n" + BODY, id="a list of equal lengths"),
            pytest.param(OK + LENGTH + LENGTH + BODY, id="equal lengths"),
            pytest.param(b"HTTP/1.1 200\r\n" + LENGTH + BODY, id="no reason"),
            pytest.param(OK + b"x:\t\xff \r\ny:\r\nContent-Length:2 \r\n" + BODY, id="unusual headers"),
            pytest.param(OK + b"x: 1\r\n" * 99 + LENGTH + BODY, id="many headers"),
            pytest.param(OK + b"Transfer-Encoding: Chunked\r\n\r\n02 ;a=b\r\n{}\r\n0\r\nx: 1\r\n\r\n", id="chunks"),
            pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH + BODY, id="after an interim response"),
        ],
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
    @each(
        "response",
        [
            pytest.param(OK + LENGTH + b"content-length: 9\r\n" + BODY, id="two lengths"),
            pytest.param(OK + b"content-length: 9\r\n" + LENGTH + BODY, id="two lengths, the last of them right"),
            pytest.param(OK + b"content-length: 2, 9\r\n" + BODY, id="a list of two lengths"),
            pytest.param(OK + b"content-length: 2,\r\n" + BODY, id="a list with an empty length"),
            pytest.param(OK + b"content-length: +2\r\n" + BODY, id="a sign"),
            pytest.param(OK + b"content-length: -2\r\n" + BODY, id="a negative length"),
            pytest.param(OK + b"content-length: 0_2\r\n" + BODY, id="an underscore"),
            pytest.param(OK + b"content-length: 0x2\r\n" + BODY, id="a hexadecimal length"),
            pytest.param(OK + b"content-length: 2.0\r\n" + BODY, id="a fraction"),
            pytest.param(OK + b"content-length: 2\xa0\r\n" + BODY, id="white space that isn't HTTP's"),
            pytest.param(OK + b"content-length:\r\n" + BODY, id="no length"),
            pytest.param(OK + b"content-length: " + b"0" * 5_000 + b"2\r\n" + BODY, id="a long length"),
            pytest.param(OK + b"content-length : 2\r\n" + BODY, id="a space before the colon"),
            pytest.param(OK + LENGTH + CHUNKED + CHUNKS, id="a length and chunks"),
            pytest.param(OK + b"transfer-encoding: gzip, chunked\r\n" + CHUNKS, id="another encoding"),
            pytest.param(OK + b"transfer-encoding: xchunked\r\n" + CHUNKS, id="an unknown encoding"),
            pytest.param(OK + b"transfer-encoding: identity\r\n" + LENGTH + BODY, id="an old encoding"),
            pytest.param(OK + CHUNKED + CHUNKED + CHUNKS, id="chunks of chunks"),
            pytest.param(b"HTTP/1.0 200 OK\r\n" + CHUNKED + CHUNKS, id="chunks of HTTP/1.0"),
            pytest.param(OK + CHUNKED + b"\r\n0x2\r\n{}\r\n0\r\n\r\n", id="a chunk's size with a prefix"),
            pytest.param(OK + CHUNKED + b"\r\n+2\r\n{}\r\n0\r\n\r\n", id="a chunk's size with a sign"),
            pytest.param(OK + CHUNKED + b"\r\n0_2\r\n{}\r\n0\r\n\r\n", id="a chunk's size with an underscore"),
            pytest.param(OK + CHUNKED + b"\r\n 2\r\n{}\r\n0\r\n\r\n", id="a space before a chunk's size"),
            pytest.param(OK + CHUNKED + b"\r\n2 \r\n{}\r\n0\r\n\r\n", id="a space after a chunk's size"),
            pytest.param(OK + CHUNKED + b"\r\n2;\nx\r\n{}\r\n0\r\n\r\n", id="a line feed in a chunk's extension"),
            pytest.param(OK + CHUNKED + b"\r\n\r\n{}\r\n0\r\n\r\n", id="no size of a chunk"),
            pytest.param(OK + CHUNKED + b"\r\n2\r\n{}x\r\n0\r\n\r\n", id="a chunk longer than its size"),
            pytest.param(OK + CHUNKED + b"\r\n2\r\n{}0\r\n\r\n\r\n", id="a chunk without an end"),
            pytest.param(OK + CHUNKED + b"\r\n2\n{}\n0\n\r\n", id="chunks with bare line feeds"),
            pytest.param(OK + CHUNKED + b"\r\n2\r\n{}\r\n0\r\na\nb: 1\r\n\r\n", id="a malformed trailer"),
            pytest.param(OK + b"x: 1\n" + LENGTH + BODY, id="a bare line feed"),
            pytest.param(OK + b"x: 1\r\r" + LENGTH + BODY, id="a bare carriage return"),
            pytest.param(OK + b"x: \0\r\n" + LENGTH + BODY, id="a NUL"),
            pytest.param(OK + b"x: 1\r\n content-length: 9\r\n" + LENGTH + BODY, id="a folded line"),
            pytest.param(OK + b" x: 1\r\n" + LENGTH + BODY, id="a space before the first header"),
            pytest.param(OK + b"x\r\n" + LENGTH + BODY, id="a header without a colon"),
            pytest.param(OK + b": 1\r\n" + LENGTH + BODY, id="a header without a name"),
            pytest.param(OK + b"x: 1\r\n" * 100 + LENGTH + BODY, id="too many headers"),
            pytest.param(OK + b"x: " + b"y" * 65_600 + b"\r\n" + LENGTH + BODY, id="too long headers"),
            pytest.param(b"HTTP/1.1 +20 OK\r\n" + LENGTH + BODY, id="a status with a sign"),
            pytest.param(b"HTTP/1.1 2000 OK\r\n" + LENGTH + BODY, id="a long status"),
            pytest.param(b"HTTP/1.1  200 OK\r\n" + LENGTH + BODY, id="two spaces before the status"),
            pytest.param(b"HTTP/1.1x 200 OK\r\n" + LENGTH + BODY, id="a malformed version"),
            pytest.param(b"\r\n" + OK + LENGTH + BODY, id="an empty line before the status"),
        ],
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
