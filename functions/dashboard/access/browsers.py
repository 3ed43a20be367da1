"""Names the browser and the system of a sign-in, for the list of sessions. The header itself is never stored."""

# Browsers also name those that they imitate, so the first match counts.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_READ = 512


def describe(user_agent: str) -> str | None:
    """Returns such as `Firefox on Windows`, `Firefox`, or `Windows`, or None if neither is known."""
    names = [
        next((name for sign, name in signs if sign in user_agent[:_READ]), None) for signs in (_BROWSERS, _SYSTEMS)
    ]
    return " on ".join(name for name in names if name) or None
