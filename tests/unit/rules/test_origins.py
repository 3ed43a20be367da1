"""The website addresses that a client may send, and the canonical form in which each is stored."""

# ruff: noqa: RUF001 (look-alike characters are what several cases are about)

import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.projects.items import Address
from controlplane.projects.origins import InvalidOrigin, parse_origin
from tests.support.each import each

CHROME_ID = "abcdefghijklmnopabcdefghijklmnop"
LONGEST_LABEL = "a" * 63
# 253 characters: the maximum length of a host name.
LONGEST_HOST = ".".join([LONGEST_LABEL] * 3 + ["b" * 57, "com"])

DOMAINS = [
    ("example.com", "example.com"),
    ("https://example.com", "example.com"),
    ("HTTPS://Example.COM/", "example.com"),
    ("http://example.com", "example.com"),
    ("example.com/", "example.com"),
    ("example.com.", "example.com"),
    ("https://example.com./", "example.com"),
    ("  example.com\n", "example.com"),
    ("www.example.co.uk", "www.example.co.uk"),
    ("someone.github.io", "someone.github.io"),
    ("v2--site.netlify.app", "v2--site.netlify.app"),
    ("4chan.org", "4chan.org"),
    ("foo-.tumblr.com", "foo-.tumblr.com"),
    ("-foo.tumblr.com", "-foo.tumblr.com"),
    ("my_shop.example.com", "my_shop.example.com"),
    ("https://example.com:443", "example.com"),
    ("http://example.com:80", "example.com"),
    ("example.com:80", "example.com"),
    ("example.com:8443", "example.com:8443"),
    ("https://example.com:08443/", "example.com:8443"),
    ("example.com:1", "example.com:1"),
    ("example.com:65535", "example.com:65535"),
    (LONGEST_HOST, LONGEST_HOST),
    (LONGEST_HOST + ".", LONGEST_HOST),
    (f"{LONGEST_LABEL}.example.com", f"{LONGEST_LABEL}.example.com"),
]

INTERNATIONAL = [
    ("bücher.de", "xn--bcher-kva.de"),
    ("BÜCHER.DE", "xn--bcher-kva.de"),
    ("bu\u0308cher.de", "xn--bcher-kva.de"),
    ("XN--BCHER-KVA.de", "xn--bcher-kva.de"),
    ("straße.de", "xn--strae-oqa.de"),
    ("пример.рф", "xn--e1afmkfd.xn--p1ai"),
    ("例え。jp", "xn--r8jz45g.jp"),
    ("example\uff0ecom", "example.com"),
    ("ｅｘａｍｐｌｅ.com", "example.com"),
    ("نامه\u200cای.com", "xn--mgba3gch31f060k.com"),
    ("https://bücher.de:8443/", "xn--bcher-kva.de:8443"),
]

WILDCARDS = [
    ("*.example.com", "*.example.com"),
    ("https://*.Example.com/", "*.example.com"),
    ("*.example.com.", "*.example.com"),
    ("*.example.com:443", "*.example.com"),
    ("*.example.com:8443", "*.example.com:8443"),
    ("*.bücher.de", "*.xn--bcher-kva.de"),
    ("*.someone.github.io", "*.someone.github.io"),
    ("*.localhost:3000", "*.localhost:3000"),
    ("*.shop.test", "*.shop.test"),
    ("*.shop.lan", "*.shop.lan"),
    ("*.my_shop.example.com", "*.my_shop.example.com"),
]

PUBLIC_ADDRESSES = [
    ("203.0.113.7", "203.0.113.7"),
    ("https://203.0.113.7:8443/", "203.0.113.7:8443"),
    ("203.0.113.7.", "203.0.113.7"),
    ("１.1.1.1", "1.1.1.1"),
    ("172.15.255.255", "172.15.255.255"),
    ("100.128.0.1", "100.128.0.1"),
    ("[2001:db8::1]", "[2001:db8::1]"),
    ("https://[2001:DB8:0:0:0:0:0:1]:443/", "[2001:db8::1]"),
    ("[2001:db8:0:0:1:0:0:1]:8443", "[2001:db8::1:0:0:1]:8443"),
    ("[::ffff:1.1.1.1]", "[::ffff:101:101]"),
    ("[::ffff:101:101]", "[::ffff:101:101]"),
]

DEVELOPMENT = [
    ("localhost", "localhost"),
    ("LOCALHOST:3000", "localhost:3000"),
    ("http://localhost:3000/", "localhost:3000"),
    ("http://localhost:80", "localhost"),
    ("localhost.", "localhost"),
    ("ｌocalhost", "localhost"),
    ("shop.localhost:5173", "shop.localhost:5173"),
    ("shop.test", "shop.test"),
    ("printer.local", "printer.local"),
    ("host.docker.internal:8080", "host.docker.internal:8080"),
    ("nas.home.arpa", "nas.home.arpa"),
    ("http://shop.lan", "shop.lan"),
    ("https://wiki.corp:8443", "wiki.corp:8443"),
    ("nas.home", "nas.home"),
    ("localhost.localdomain", "localhost.localdomain"),
    # Hosts of a network and containers, which have no dot. `web` and `test` are top-level domains.
    ("http://devbox:3000", "devbox:3000"),
    ("http://devbox", "devbox"),
    ("http://my_shop_1:8080/", "my_shop_1:8080"),
    ("http://web:3000", "web:3000"),
    ("test:5173", "test:5173"),
    ("https://intranet/", "intranet"),
    ("https://bücher:3000", "xn--bcher-kva:3000"),
    ("127.0.0.1:8000", "127.0.0.1:8000"),
    ("127.255.255.254", "127.255.255.254"),
    ("0.0.0.0:8000", "0.0.0.0:8000"),
    ("10.1.2.3", "10.1.2.3"),
    ("100.64.0.1", "100.64.0.1"),
    ("169.254.169.254", "169.254.169.254"),
    ("172.16.0.1", "172.16.0.1"),
    ("172.31.255.255", "172.31.255.255"),
    ("192.168.1.10:3000", "192.168.1.10:3000"),
    ("１２７.0.0.1", "127.0.0.1"),
    ("[::1]:3000", "[::1]:3000"),
    ("[0:0:0:0:0:0:0:1]", "[::1]"),
    ("[::]", "[::]"),
    ("[fe80::1]", "[fe80::1]"),
    ("[FD00::1]", "[fd00::1]"),
    ("[fc00::1]", "[fc00::1]"),
    ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    ("[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]"),
]

APPS = [
    ("capacitor://localhost", "capacitor://localhost"),
    ("Capacitor://LOCALHOST/", "capacitor://localhost"),
    ("capacitor://localhost:80", "capacitor://localhost:80"),
    ("ionic://localhost", "ionic://localhost"),
    ("tauri://localhost", "tauri://localhost"),
    ("com.example.app://", "com.example.app://"),
    ("com.example.app:///", "com.example.app://"),
    ("com.example.app://callback", "com.example.app://callback"),
    ("app://obsidian.md", "app://obsidian.md"),
    ("app://-", "app://-"),
    (f"chrome-extension://{CHROME_ID}", f"chrome-extension://{CHROME_ID}"),
    (
        "moz-extension://95c3a4a6-0e5c-4c3f-9d55-2b8a1f0e7d10/",
        "moz-extension://95c3a4a6-0e5c-4c3f-9d55-2b8a1f0e7d10",
    ),
]

ACCEPTED = [
    *((sent, stored, "domain") for sent, stored in DOMAINS + INTERNATIONAL + PUBLIC_ADDRESSES),
    *((sent, stored, "wildcard") for sent, stored in WILDCARDS),
    *((sent, stored, "development") for sent, stored in DEVELOPMENT),
    *((sent, stored, "app") for sent, stored in APPS),
    ("*", "*", "any"),
    (" * ", "*", "any"),
]

EMPTY = "must not be empty"
TOO_LONG = "at most 2048 characters"
HIDDEN = "invisible characters"
PATH = "without a path, query or fragment"
USER = "user name or password"
PORT = "port from 1 to 65535"
OTHER_PORT = "is the one of the other scheme"
LABEL = "1 to 63 letters, digits, hyphens, or underscores"
REGISTERED = "can't have an underscore, or a hyphen at either end"
HOST_LENGTH = "at most 253 characters"
CHARACTER = "has a character that no internationalized"
NAME = "not a valid internationalized domain name"
SHARED = "a suffix that many owners share"
UNKNOWN = "known top-level domain"
STAR = "must be the whole address or the whole first label"
IPV4 = "four decimal numbers"
BRACKETS = "must be in brackets"
IPV6 = "not an IPv6 address"
NO_WEBSITE = "No website can have this IP address"
SCHEME = "No app is served from this scheme"
MISSPELLED = "misspelled https"

REFUSED = [
    ("", EMPTY),
    (" \t\n", EMPTY),
    ("a" * 2049, TOO_LONG),
    ("exa mple.com", HIDDEN),
    ("example.com https://example.org", HIDDEN),
    ("exam\tple.com", HIDDEN),
    ("example.com\0", HIDDEN),
    ("example\x7f.com", HIDDEN),
    ("example\u0085.com", HIDDEN),
    ("example\u00a0.com", HIDDEN),
    ("example\u00ad.com", HIDDEN),
    ("exam\u200bple.com", HIDDEN),
    ("\u202eexample.com", HIDDEN),
    ("\ufeffexample.com", HIDDEN),
    ("exam\ud800ple.com", HIDDEN),
    ("https:\\\\example.com", "backslash"),
    ("example.com\\@example.org", "backslash"),
    ("example%2ecom", "percent-encoding"),
    ("[fe80::1%25eth0]", "IPv6 zone"),
    ("[fe80::1%eth0]", "IPv6 zone"),
    ("https://", PATH),
    ("https:///", PATH),
    ("/", PATH),
    ("//example.com", PATH),
    ("example.com//", PATH),
    ("https://example.com/shop", PATH),
    ("example.com?x=1", PATH),
    ("example.com/#top", PATH),
    ("https://user@example.com", USER),
    ("user:secret@example.com", USER),
    ("mailto:someone@example.com", USER),
    ("example.com:", PORT),
    ("example.com:0", PORT),
    ("example.com:65536", PORT),
    ("example.com:000443", PORT),
    ("example.com:+80", PORT),
    ("example.com:٨٠", PORT),
    ("example.com:http", PORT),
    ("[::1]:", PORT),
    ("capacitor://localhost:0", PORT),
    ("javascript:alert(1)", PORT),
    ("data:text", PORT),
    ("about:blank", PORT),
    (".example.com", LABEL),
    ("example..com", LABEL),
    ("example.com..", LABEL),
    (".", LABEL),
    (":3000", LABEL),
    ("-example.com", REGISTERED),
    ("example-.com", REGISTERED),
    ("my_shop.com", REGISTERED),
    ("*.my_shop.com", REGISTERED),
    ("example!.com", LABEL),
    ("'example.com'", LABEL),
    ("a" * 64 + ".com", LABEL),
    ("a" + LONGEST_HOST, LABEL),
    ("a." + LONGEST_HOST, HOST_LENGTH),
    ("*." + LONGEST_HOST, HOST_LENGTH),
    ("ü" * 60 + ".de", NAME),
    ("exam\u2488ple.com", CHARACTER),
    ("℀.com", CHARACTER),
    ("example\uff20.com", CHARACTER),
    ("\uff0a.example.com", CHARACTER),
    ("😀.com", NAME),
    ("xn--.com", NAME),
    ("xn--a.com", NAME),
    ("xn--bcher-kva-.com", NAME),
    ("a\u200db.com", NAME),
    ("com", SHARED),
    ("co.uk", SHARED),
    ("github.io", SHARED),
    ("公司.cn", SHARED),
    ("test", SHARED),
    ("local", SHARED),
    ("home.arpa", SHARED),
    ("http://web", SHARED),
    ("null", "pages of no website"),
    ("http://null:80", "pages of no website"),
    ("https://null:3000", "pages of no website"),
    ("https://example.com:80", OTHER_PORT),
    ("http://example.com:443/", OTHER_PORT),
    ("https://localhost:80", OTHER_PORT),
    ("http://*.example.com:443", OTHER_PORT),
    ("https://[::1]:80", OTHER_PORT),
    ("example.nosuchtld", UNKNOWN),
    ("*.com", SHARED),
    ("*.co.uk", SHARED),
    ("*.github.io", SHARED),
    ("https://*.kobe.jp", SHARED),
    ("*.test", SHARED),
    ("*.intranet", UNKNOWN),
    ("*.devbox", UNKNOWN),
    ("*.lan", UNKNOWN),
    ("**", STAR),
    ("*.", STAR),
    ("*:3000", STAR),
    ("https://*", STAR),
    ("*example.com", STAR),
    ("shop-*.example.com", STAR),
    ("shop.*.com", STAR),
    ("*.*.example.com", STAR),
    ("*.127.0.0.1", "precede an IP address"),
    ("127.1", IPV4),
    ("2130706433", IPV4),
    ("0x7f000001", IPV4),
    ("0x7f.0.0.1", IPV4),
    ("0177.0.0.1", IPV4),
    ("127.0.0.01", IPV4),
    ("256.1.1.1", IPV4),
    ("1.1.1.1.1", IPV4),
    ("example.123", IPV4),
    ("example.0x", IPV4),
    ("0.1.2.3", NO_WEBSITE),
    ("224.0.0.1", NO_WEBSITE),
    ("255.255.255.255", NO_WEBSITE),
    ("2001:db8::1", BRACKETS),
    ("localhost:3000:3000", "at most one port"),
    ("::1", BRACKETS),
    ("[::1", BRACKETS),
    ("[::1]3000", BRACKETS),
    ("[]", IPV6),
    ("[127.0.0.1]", IPV6),
    ("[1::2::3]", IPV6),
    ("[localhost]", IPV6),
    ("[ff02::1]", NO_WEBSITE),
    ("[64:ff9b::a00:1]", NO_WEBSITE),
    ("[2002:a00:1::]", NO_WEBSITE),
    ("[2001:0:a00:1::1]", NO_WEBSITE),
    ("[::7f00:1]", NO_WEBSITE),
    ("[::ffff:224.0.0.1]", NO_WEBSITE),
    *(
        (f"{scheme}://example.com", SCHEME)
        for scheme in (
            "javascript", "JavaScript", "data", "file", "blob", "about", "vbscript", "view-source", "filesystem",
            "ws", "wss", "ftp", "chrome", "content", "intent",
        )
    ),
    ("file:///etc/passwd", SCHEME),
    ("htps://example.com", MISSPELLED),
    ("htttps://example.com", MISSPELLED),
    ("ttps://example.com", MISSPELLED),
    ("httpss://example.com", MISSPELLED),
    ("://example.com", "must start with a letter"),
    ("*://example.com", "must start with a letter"),
    ("1app://localhost", "must start with a letter"),
    ("my_app://localhost", "must start with a letter"),
    ("\u212aapp://localhost", "written in ASCII"),
    ("app://\u212aelvin", "written in ASCII"),
    ("app://localhost/index.html", "address of an app"),
    ("app://*", "address of an app"),
    ("app://:3000", "address of an app"),
    ("app://user@localhost", "address of an app"),
    ("chrome-extension://", "Chrome extension"),
    ("chrome-extension://localhost", "Chrome extension"),
    (f"chrome-extension://{'q' * 32}", "Chrome extension"),
]  # fmt: skip


@each(("sent", "stored", "kind"), ACCEPTED)
def test_an_address_is_normalized_and_has_a_kind(sent: str, stored: str, kind: str) -> None:
    assert parse_origin(sent) == Address(stored, kind)  # type: ignore[arg-type]


@each("sent", [sent for sent, _, _ in ACCEPTED])
def test_normalizing_a_normalized_address_changes_nothing(sent: str) -> None:
    stored = parse_origin(sent)
    assert parse_origin(stored.origin) == stored


@each(("sent", "reason"), REFUSED)
def test_an_invalid_address_is_rejected_with_a_reason(sent: str, reason: str) -> None:
    with pytest.raises(InvalidOrigin) as refusal:
        parse_origin(sent)
    assert reason in refusal.value.reason
    assert refusal.value.reason.endswith(".")
    assert refusal.value.value == sent
    assert str(refusal.value) == refusal.value.reason


@each("sent", ["shop.devnet", "http://web", "*.intranet", "test", "com", "null"])
def test_an_unusable_name_is_rejected_with_what_to_write_for_a_private_host(sent: str) -> None:
    with pytest.raises(InvalidOrigin) as refusal:
        parse_origin(sent)
    assert "use localhost, its IP address, or a name that ends in .localhost, .test, .local" in refusal.value.reason


def test_an_invalid_origin_error_can_be_pickled() -> None:
    refusal = pickle.loads(pickle.dumps(InvalidOrigin("x", "No.")))
    assert (refusal.value, refusal.reason) == ("x", "No.")


def test_large_tables_are_loaded_by_the_first_address_that_needs_them() -> None:
    program = (
        "import sys; from controlplane.projects.origins import parse_origin\n"
        "for address in ('*', 'http://localhost:3000', '[::1]', '10.0.0.1', 'capacitor://localhost'):\n"
        "    parse_origin(address)\n"
        "assert not {'idna', 'publicsuffixlist'} & set(sys.modules)\n"
        "parse_origin('example.com')\n"
        "assert 'idna' not in sys.modules\n"
    )
    subprocess.run(  # A new interpreter, because this one may have loaded them for another test.
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )


def assert_refused_or_stable(text: str) -> None:
    """Checks that any text either raises InvalidOrigin or has a form that parses to itself."""
    try:
        stored = parse_origin(text)
    except InvalidOrigin:
        return
    assert parse_origin(stored.origin) == stored
    assert stored.origin.isascii()
    assert stored.origin == stored.origin.lower()


PRIVATE_NETWORKS = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]
LABELS = st.one_of(
    st.sampled_from(["example", "www", "com", "uk", "co", "github", "io", "localhost", "test", "*", "0x7f", "1"]),
    st.text("abc-", min_size=1, max_size=6).map("xn--{}".format),
    st.text(min_size=1, max_size=4),
    st.integers(0, 300).map(str),
)
HOSTS = st.one_of(
    st.lists(LABELS, min_size=1, max_size=5).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map("[{}]".format),
    st.text(":0123456789abcdef.", max_size=20).map("[{}]".format),
)
ADDRESSES = st.tuples(
    st.sampled_from(["", "http://", "https://", "HTTPS://", "app://", "chrome-extension://", "javascript:", "//"]),
    HOSTS,
    st.one_of(st.just(""), st.integers(0, 70000).map(":{}".format), st.sampled_from([".", ":", ":x", "\u3002"])),
    st.sampled_from(["", "", "/", "/x", "?", "#", "@", "\\"]),
).map("".join)


@settings(deadline=None)
@given(st.text(st.characters(codec=None), max_size=60))
@example("xn--0.com")
@example("ſtraße.de")
def test_any_text_is_rejected_or_stable(text: str) -> None:
    assert_refused_or_stable(text)


@settings(deadline=None, max_examples=400)
@given(ADDRESSES)
def test_anything_shaped_like_an_address_is_rejected_or_stable(text: str) -> None:
    assert_refused_or_stable(text)


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=0xA0), min_size=1, max_size=12))
def test_any_international_name_is_rejected_or_stable(label: str) -> None:
    assert_refused_or_stable(f"{label}.example.com")


@settings(deadline=None)
@given(st.sampled_from(PRIVATE_NETWORKS).flatmap(lambda network: st.ip_addresses(network=network)))
def test_a_private_address_is_development_in_every_spelling(address):
    assert parse_origin(f"{address}").kind == "development"
    assert parse_origin(f"[::ffff:{address}]").kind == "development"
