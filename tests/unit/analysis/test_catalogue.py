"""The vendor catalog: valid, unique, and matched only by the vendors' own addresses, never by similar ones."""

import re
from collections import Counter

import pytest

from scan_execution.analysis.catalogue import Catalogue, Vendor, catalogue

VENDORS = tuple(catalogue().vendors.values())
PATTERNS = [(vendor, pattern) for vendor in VENDORS for pattern in vendor.domains]
CATEGORIES = {
    "analytics", "tag-manager", "marketing", "session-replay", "social", "chat", "feedback", "ab-testing",
    "error-monitoring", "cookieless-analytics", "consent-management", "payments", "captcha", "video", "maps", "fonts",
    "cdn",
}  # fmt: skip
HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}"


def first_in(text):
    found = catalogue().first_in(text)
    return found.id if found else None


class TestData:
    def test_knows_at_least_150_trackers_and_tags(self):
        necessary = {"payments", "captcha", "maps", "fonts", "cdn", "consent-management", "video"}
        assert sum(vendor.category not in necessary for vendor in VENDORS) >= 150

    def test_every_vendor_has_a_known_category(self):
        assert {vendor.category for vendor in VENDORS} == CATEGORIES

    def test_every_vendor_has_a_unique_id_and_a_name(self):
        assert all(count == 1 for count in Counter(vendor.name for vendor in VENDORS).values())
        assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", vendor.id) for vendor in VENDORS)

    def test_no_pattern_and_no_package_is_listed_twice(self):
        assert [pattern for pattern, count in Counter(p for _, p in PATTERNS).items() if count > 1] == []
        packages = Counter(package for vendor in VENDORS for package in vendor.packages)
        assert [package for package, count in packages.items() if count > 1] == []

    @pytest.mark.parametrize("pattern", sorted(pattern for _, pattern in PATTERNS))
    def test_a_pattern_is_a_host_with_or_without_a_path(self, pattern):
        assert re.fullmatch(rf"{HOST}(?:/[\w./-]*)?", pattern)


class TestLookup:
    @pytest.mark.parametrize(("vendor", "pattern"), PATTERNS, ids=[pattern for _, pattern in PATTERNS])
    def test_a_vendor_is_found_by_its_own_urls(self, vendor, pattern):
        host, slash, path = pattern.partition("/")
        assert first_in(f"https://{pattern}") == vendor.id
        assert first_in(f"'//{host.upper()}:443{slash}{path}?id=1'") == vendor.id
        below = f"https://eu1.{pattern}"
        assert catalogue().first_in(below).id == vendor.id or f"eu1.{host}" in {p for _, p in PATTERNS}

    @pytest.mark.parametrize(("vendor", "pattern"), PATTERNS, ids=[pattern for _, pattern in PATTERNS])
    def test_a_vendor_is_not_found_by_a_similar_url(self, vendor, pattern):
        host, slash, path = pattern.partition("/")
        for other in (
            f"https://{host}.example{slash}{path}",
            f"https://evil-{host}.example{slash}{path}",
            f"https://www.acme.example/{pattern}",
            f"https://www.acme.example/?to=https://{pattern}",
            f"https://{host}@acme.example/{path}",
            f"https://{host}:pass@acme.example/{path}",
        ):
            assert first_in(other) is None, other
        if host.count(".") == 1:
            assert first_in(f"https://evil{host}{slash}{path}") != vendor.id

    @pytest.mark.parametrize(("address", "vendor"), [
        ("https://www.googletagmanager.com/gtm.js?id=GTM-1", "google-tag-manager"),
        ("https://www.googletagmanager.com/gtag/js?id=G-1", "google-analytics"),
        ("https://connect.facebook.net/en_US/fbevents.js", "meta-pixel"),
        ("https://connect.facebook.net/en_US/sdk.js", "facebook-sdk"),
        ("https://www.facebook.com/tr?id=1", "meta-pixel"),
        ("https://www.facebook.com/acme", None),
        ("https://www.youtube.com/embed/x", "youtube"),
        ("https://www.youtube.com/watch?v=x", None),
        ("https://tt.omtrdc.net/x", "adobe-target"),
        ("https://acme.omtrdc.net/x", "adobe-analytics"),
    ])  # fmt: skip
    def test_the_longest_pattern_wins(self, address, vendor):
        assert first_in(address) == vendor

    def test_finds_every_url_of_a_text_with_its_position(self):
        text = "a //hotjar.com/x b https://acme.example c https://www.clarity.ms/tag/1"
        assert [(place, vendor.id) for place, vendor in catalogue().addresses_in(text)] == [
            (2, "hotjar"), (text.rindex("//"), "microsoft-clarity"),
        ]  # fmt: skip

    def test_finds_packages_only_by_their_imports(self):
        text = """
        import posthog from 'posthog-js'; const x = require("mixpanel-browser"); await import('@hotjar/browser');
        import { PostHogProvider } from 'posthog-js/react'; // logrocket
        const name = 'amplitude-js'; import evil from 'posthog-js-evil';
        """
        assert set(catalogue().packages_in(text)) == {"posthog-js", "mixpanel-browser", "@hotjar/browser"}

    def test_an_unknown_url_belongs_to_no_vendor(self):
        own = Catalogue([Vendor("a", "A", "analytics", ("a.example/x",))])
        assert own.vendor_of("a.example", "/x/1").id == "a"
        assert own.vendor_of("a.example", "/y") is None
        assert own.vendor_of("example", "/x") is None
        assert own.vendor_of("", "") is None
