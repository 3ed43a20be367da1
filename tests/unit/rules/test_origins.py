"""The website addresses that a client may send, and the canonical form in which each is stored."""

# ruff: noqa: RUF001 (look-alike characters are what several cases are about)

import os
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


def same(*addresses: str) -> list[tuple[str, str]]:
    """Returns addresses that are stored as they were sent."""
    return [(address, address) for address in addresses]


DOMAINS = [
    *same(
        "example.com", "www.example.co.uk", "someone.github.io", "v2--site.netlify.app", "4chan.org",
        "foo-.tumblr.com", "-foo.tumblr.com", "my_shop.example.com", "example.com:8443", "example.com:1",
        "example.com:65535", LONGEST_HOST, f"{LONGEST_LABEL}.example.com",
    ),
    ("https://example.com", "example.com"),
    ("HTTPS://Example.COM/", "example.com"),
    ("http://example.com", "example.com"),
    ("example.com/", "example.com"),
    ("example.com.", "example.com"),
    ("https://example.com./", "example.com"),
    ("  example.com\n", "example.com"),
    ("https://example.com:443", "example.com"),
    ("http://example.com:80", "example.com"),
    ("example.com:80", "example.com"),
    ("https://example.com:08443/", "example.com:8443"),
    (LONGEST_HOST + ".", LONGEST_HOST),
]  # fmt: skip

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
    *same(
        "*.example.com", "*.example.com:8443", "*.someone.github.io", "*.localhost:3000", "*.shop.test", "*.shop.lan",
        "*.my_shop.example.com",
    ),
    ("https://*.Example.com/", "*.example.com"),
    ("*.example.com.", "*.example.com"),
    ("*.example.com:443", "*.example.com"),
    ("*.bücher.de", "*.xn--bcher-kva.de"),
]  # fmt: skip

PUBLIC_ADDRESSES = [
    *same(
        "203.0.113.7", "172.15.255.255", "100.128.0.1", "[2001:db8::1]", "[::ffff:101:101]",
    ),
    ("https://203.0.113.7:8443/", "203.0.113.7:8443"),
    ("203.0.113.7.", "203.0.113.7"),
    ("１.1.1.1", "1.1.1.1"),
    ("https://[2001:DB8:0:0:0:0:0:1]:443/", "[2001:db8::1]"),
    ("[2001:db8:0:0:1:0:0:1]:8443", "[2001:db8::1:0:0:1]:8443"),
    ("[::ffff:1.1.1.1]", "[::ffff:101:101]"),
]  # fmt: skip

DEVELOPMENT = [
    *same(
        "localhost", "shop.localhost:5173", "shop.test", "printer.local", "host.docker.internal:8080",
        "nas.home.arpa", "nas.home", "localhost.localdomain", "test:5173", "127.0.0.1:8000", "127.255.255.254",
        "0.0.0.0:8000", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.168.1.10:3000", "[::1]:3000", "[::]", "[fe80::1]", "[fc00::1]",
    ),
    ("LOCALHOST:3000", "localhost:3000"),
    ("http://localhost:3000/", "localhost:3000"),
    ("http://localhost:80", "localhost"),
    ("localhost.", "localhost"),
    ("ｌocalhost", "localhost"),
    ("http://shop.lan", "shop.lan"),
    ("https://wiki.corp:8443", "wiki.corp:8443"),
    ("http://devbox:3000", "devbox:3000"),
    ("http://devbox", "devbox"),
    ("http://my_shop_1:8080/", "my_shop_1:8080"),
    ("http://web:3000", "web:3000"),
    ("https://intranet/", "intranet"),
    ("https://bücher:3000", "xn--bcher-kva:3000"),
    ("１２７.0.0.1", "127.0.0.1"),
    ("[0:0:0:0:0:0:0:1]", "[::1]"),
    ("[FD00::1]", "[fd00::1]"),
    ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    ("[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]"),
]  # fmt: skip

APPS = [
    *same(
        "capacitor://localhost", "capacitor://localhost:80", "ionic://localhost", "tauri://localhost",
        "com.example.app://", "com.example.app://callback", "app://obsidian.md", "app://-",
        f"chrome-extension://{CHROME_ID}",
    ),
    ("Capacitor://LOCALHOST/", "capacitor://localhost"),
    ("com.example.app:///", "com.example.app://"),
    ("moz-extension://95c3a4a6-0e5c-4c3f-9d55-2b8a1f0e7d10/", "moz-extension://95c3a4a6-0e5c-4c3f-9d55-2b8a1f0e7d10"),
]  # fmt: skip

ACCEPTED = [
    *((sent, stored, "domain") for sent, stored in DOMAINS + INTERNATIONAL + PUBLIC_ADDRESSES),
    *((sent, stored, "wildcard") for sent, stored in WILDCARDS),
    *((sent, stored, "development") for sent, stored in DEVELOPMENT),
    *((sent, stored, "app") for sent, stored in APPS),
    ("*", "*", "any"),
    (" * ", "*", "any"),
]

SCHEMES = (
    "javascript", "JavaScript", "data", "file", "blob", "about", "vbscript", "view-source", "filesystem", "ws", "wss",
    "ftp", "chrome", "content", "intent",
)  # fmt: skip
# The addresses that are refused, by the reason that is given.
REFUSED: dict[str, tuple[str, ...]] = {
    "must not be empty": ("", " \t\n"),
    "at most 2048 characters": ("a" * 2049,),
    "invisible characters": (
        "exa mple.com", "example.com https://example.org", "exam\tple.com", "example.com\0", "example\x7f.com",
        "example\u0085.com", "example\u00a0.com", "example\u00ad.com", "exam\u200bple.com", "\u202eexample.com",
        "\ufeffexample.com", "exam\ud800ple.com",
    ),
    "backslash": ("https:\\\\example.com", "example.com\\@example.org"),
    "percent-encoding": ("example%2ecom",),
    "IPv6 zone": ("[fe80::1%25eth0]", "[fe80::1%eth0]"),
    "without a path, query or fragment": (
        "https://", "https:///", "/", "//example.com", "example.com//", "https://example.com/shop", "example.com?x=1",
        "example.com/#top",
    ),
    "user name or password": ("https://user@example.com", "user:secret@example.com", "mailto:someone@example.com"),
    "port from 1 to 65535": (
        "example.com:", "example.com:0", "example.com:65536", "example.com:000443", "example.com:+80",
        "example.com:٨٠", "example.com:http", "[::1]:", "capacitor://localhost:0", "javascript:alert(1)", "data:text",
        "about:blank",
    ),
    "1 to 63 letters, digits, hyphens, or underscores": (
        ".example.com", "example..com", "example.com..", ".", ":3000", "example!.com", "'example.com'",
        "a" * 64 + ".com", "a" + LONGEST_HOST,
    ),
    "can't have an underscore, or a hyphen at either end": (
        "-example.com", "example-.com", "my_shop.com", "*.my_shop.com",
    ),
    "at most 253 characters": ("a." + LONGEST_HOST, "*." + LONGEST_HOST),
    "not a valid internationalized domain name": (
        "ü" * 60 + ".de", "😀.com", "xn--.com", "xn--a.com", "xn--bcher-kva-.com", "a\u200db.com",
    ),
    "has a character that no internationalized": (
        "exam\u2488ple.com", "℀.com", "example\uff20.com", "\uff0a.example.com",
    ),
    "a suffix that many owners share": (
        "com", "co.uk", "github.io", "公司.cn", "test", "local", "home.arpa", "http://web", "*.com", "*.co.uk",
        "*.github.io", "https://*.kobe.jp", "*.test",
    ),
    "pages of no website": ("null", "http://null:80", "https://null:3000"),
    "is the one of the other scheme": (
        "https://example.com:80", "http://example.com:443/", "https://localhost:80", "http://*.example.com:443",
        "https://[::1]:80",
    ),
    "known top-level domain": ("example.nosuchtld", "*.intranet", "*.devbox", "*.lan"),
    "must be the whole address or the whole first label": (
        "**", "*.", "*:3000", "https://*", "*example.com", "shop-*.example.com", "shop.*.com", "*.*.example.com",
    ),
    "precede an IP address": ("*.127.0.0.1",),
    "four decimal numbers": (
        "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "256.1.1.1", "1.1.1.1.1",
        "example.123", "example.0x",
    ),
    "No website can have this IP address": (
        "0.1.2.3", "224.0.0.1", "255.255.255.255", "[ff02::1]", "[64:ff9b::a00:1]", "[2002:a00:1::]",
        "[2001:0:a00:1::1]", "[::7f00:1]", "[::ffff:224.0.0.1]",
    ),
    "must be in brackets": ("2001:db8::1", "::1", "[::1", "[::1]3000"),
    "at most one port": ("localhost:3000:3000",),
    "not an IPv6 address": ("[]", "[127.0.0.1]", "[1::2::3]", "[localhost]"),
    "No app is served from this scheme": (*(f"{scheme}://example.com" for scheme in SCHEMES), "file:///etc/passwd"),
    "misspelled https": ("htps://example.com", "htttps://example.com", "ttps://example.com", "httpss://example.com"),
    "must start with a letter": ("://example.com", "*://example.com", "1app://localhost", "my_app://localhost"),
    "written in ASCII": ("\u212aapp://localhost", "app://\u212aelvin"),
    "address of an app": ("app://localhost/index.html", "app://*", "app://:3000", "app://user@localhost"),
    "Chrome extension": ("chrome-extension://", "chrome-extension://localhost", f"chrome-extension://{'q' * 32}"),
}  # fmt: skip


@each(("sent", "stored", "kind"), ACCEPTED)
def test_an_address_is_normalized_once_and_has_a_kind(sent, stored, kind):
    assert parse_origin(sent) == parse_origin(stored) == Address(stored, kind)  # type: ignore[arg-type]


@each(("reason", "sent"), [(reason, sent) for reason, texts in REFUSED.items() for sent in texts])
def test_an_invalid_address_is_rejected_with_a_reason(sent, reason):
    with pytest.raises(InvalidOrigin) as refusal:
        parse_origin(sent)
    assert reason in refusal.value.reason
    assert refusal.value.reason.endswith(".")
    assert refusal.value.value == sent
    assert str(refusal.value) == refusal.value.reason


@each("sent", ["shop.devnet", "http://web", "*.intranet", "test", "com", "null"])
def test_an_unusable_name_is_rejected_with_what_to_write_for_a_private_host(sent):
    with pytest.raises(InvalidOrigin) as refusal:
        parse_origin(sent)
    assert "use localhost, its IP address, or a name that ends in .localhost, .test, .local" in refusal.value.reason


def test_large_tables_are_loaded_by_the_first_address_that_needs_them():
    program = (
        "import sys; from controlplane.projects.origins import parse_origin\n"
        "for address in ('*', 'http://localhost:3000', '[::1]', '10.0.0.1', 'capacitor://localhost'):\n"
        "    parse_origin(address)\n"
        "assert not {'idna', 'publicsuffixlist'} & set(sys.modules)\n"
        "parse_origin('example.com')\n"
        "assert 'idna' not in sys.modules\n"
    )
    subprocess.run(  # A new interpreter, because this one may have loaded them for another test.
        [sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    )


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


ANY = st.text(st.characters(codec=None), max_size=60)
INTERNATIONAL_NAMES = st.text(st.characters(min_codepoint=0xA0), min_size=1, max_size=12).map("{}.example.com".format)


@settings(deadline=None, max_examples=600)
@given(ANY | ADDRESSES | INTERNATIONAL_NAMES)
@example("xn--0.com")
@example("ſtraße.de")
def test_any_text_is_rejected_or_has_a_form_that_parses_to_itself(text):
    try:
        stored = parse_origin(text)
    except InvalidOrigin:
        return
    assert parse_origin(stored.origin) == stored
    assert stored.origin.isascii()
    assert stored.origin == stored.origin.lower()


@settings(deadline=None)
@given(st.sampled_from(PRIVATE_NETWORKS).flatmap(lambda network: st.ip_addresses(network=network)))
def test_a_private_address_is_development_in_every_spelling(address):
    assert parse_origin(f"{address}").kind == "development"
    assert parse_origin(f"[::ffff:{address}]").kind == "development"
