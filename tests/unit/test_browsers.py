"""The browser and the system of a sign-in, from its User-Agent."""

import pytest

from dashboard.access.browsers import describe

_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (f"{_WINDOWS[:-1]}; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
        (f"{_WINDOWS} {_WEBKIT} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0", "Edge on Windows"),
        (f"{_MAC} {_WEBKIT} Chrome/140.0.0.0 Safari/537.36", "Chrome on macOS"),
        (f"{_MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) CriOS/140.0 Safari/604.1", "Chrome on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {_WEBKIT} SamsungBrowser/28.0 Chrome/130", "Samsung Internet on Android"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_WEBKIT} Chrome/140.0", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {_WEBKIT} Chrome/140.0 OPR/120", "Opera on Linux"),
        ("curl/8.5.0 (Linux)", "Linux"),
        ("Firefox/1", "Firefox"),
        ("", None),
        ("x" * 10_000 + "Firefox/1", None),
    ],
)
def test_names_the_browser_and_the_system(user_agent, words):
    assert describe(user_agent) == words
