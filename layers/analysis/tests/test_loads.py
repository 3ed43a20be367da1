"""The inventory counts the files that load a vendor, and those that load it without consent, and keeps some hosts."""

from analysis_testing.in_process import analyze_files
from openassent_analysis.findings import Loads
from openassent_analysis.inventory.stocktaking import Inventory, with_loads
from tests.support.each import each

START = "import posthog from 'posthog-js';\nposthog.init('phc_abc');\n"
GATED = "import posthog from 'posthog-js';\nif (hasConsent('analytics')) posthog.init('phc_abc');\n"
CONFIG = "gtag('config', 'G-8Q2WZKX1PL');\n"
TAG = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-8Q2WZKX1PL"></script>'
HOTJAR = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
PAGE = '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
COOKIEBOT = '<script src="https://consent.cookiebot.com/uc.js"></script>'
SEVERAL = "".join(HOTJAR.replace("static", f"s{number}") for number in range(9))


def loads(files: dict[str, str]) -> dict[str, Loads]:
    return analyze_files([(path, content.encode()) for path, content in files.items()]).loads


@each(("files", "vendor", "counts", "hosts"), [
    ({"main.ts": START, "other.ts": GATED}, "posthog", (2, 1), []),  # a package has no host
    ({"main.js": HOTJAR, "b.js": f"if (consent.given) {{ {HOTJAR} }}"}, "hotjar", (2, 1), ["static.hotjar.com"]),
    # A start call counts only if nothing else loads the vendor.
    ({"main.js": CONFIG}, "google-analytics", (1, 1), []),
    ({"main.js": CONFIG, "index.html": TAG}, "google-analytics", (1, 1), ["www.googletagmanager.com"]),
    ({"index.js": CONFIG * 2, "main.js": CONFIG}, "google-analytics", (2, 2), []),
    ({"mkdocs.yml": "google_analytics: ['UA-98765432-1', auto]\n"}, "google-analytics", (1, 1), []),
    # A file counts once, and few hosts are kept.
    ({"index.html": PAGE * 2, "main.js": HOTJAR * 2}, "hotjar", (2, 2), ["static.hotjar.com"]),
    ({"main.js": SEVERAL}, "hotjar", (1, 1), ["s0.hotjar.com", "s1.hotjar.com", "s2.hotjar.com"]),
    # A consent manager counts wherever its address is.
    ({"a.html": COOKIEBOT}, "cookiebot", (1, 0), ["consent.cookiebot.com"]),
])  # fmt: skip
def test_counts_the_files_that_load_a_vendor(files, vendor, counts, hosts):
    found = loads(files)
    assert found.keys() == {vendor}
    assert ((found[vendor].files, found[vendor].ungated), found[vendor].hosts) == (counts, hosts)


def test_the_inventory_says_where_a_vendor_waits_for_consent():
    gated = {f"a{n}.js": f"if (consent.given) {{ {HOTJAR} }}" for n in range(9)}
    # No file was found that loads b.js.
    found = loads({**gated, "main.js": HOTJAR, "b.js": HOTJAR, f"{'long/' * 40}main.js": HOTJAR, "a.html": COOKIEBOT})
    manager, hotjar = with_loads(Inventory(files=11), found).vendors
    assert hotjar.places == (("main.js", False), ("b.js", None), ("a0.js", True), ("a1.js", True), ("a2.js", True))
    assert manager.places == (("a.html", None),)


def test_a_link_is_no_load():
    assert loads({"a.html": '<a href="https://www.hotjar.com/">Hotjar</a>', "b.js": "// https://hotjar.com/\n"}) == {}


def test_a_vendor_that_no_manifest_names_is_added_to_the_inventory():
    (vendor,) = with_loads(Inventory(files=1), loads({"main.js": HOTJAR})).vendors
    assert (vendor.name, vendor.packages) == ("Hotjar", ())
    assert (vendor.loading_files, vendor.ungated_files) == (1, 1)
