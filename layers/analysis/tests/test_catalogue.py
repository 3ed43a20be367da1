"""The vendor catalog: valid, unique, and matched only by the vendors' own addresses, never by similar ones."""

import json
import re
from collections import Counter

from openassent_analysis.catalogue import THIRD_PARTIES, Catalogue, Vendor, catalogue, merged, suffixes
from openassent_analysis.reading import resource
from tests.support.each import each

VENDORS = tuple(catalogue().vendors.values())
PATTERNS = [(vendor, pattern) for vendor in VENDORS for pattern in vendor.domains]
CATEGORIES = {
    "analytics", "tag-manager", "marketing", "session-replay", "social", "chat", "feedback", "ab-testing",
    "error-monitoring", "cookieless-advertising", "cookieless-analytics", "consent-management", "payments", "captcha",
    "video", "maps", "fonts", "cdn", "other", "widgets",
}  # fmt: skip
HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}"


def first_in(text):
    found = catalogue().first_in(text)
    return found.id if found else None


class TestData:
    def test_every_vendor_has_a_known_category(self):
        assert {vendor.category for vendor in VENDORS} == CATEGORIES

    def test_every_vendor_has_a_unique_id_and_a_name(self):
        assert all(count == 1 for count in Counter(vendor.name for vendor in VENDORS).values())
        assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", vendor.id) for vendor in VENDORS)

    def test_no_pattern_and_no_package_is_listed_twice(self):
        assert [pattern for pattern, count in Counter(p for _, p in PATTERNS).items() if count > 1] == []
        packages = Counter(package for vendor in VENDORS for package in vendor.packages)
        assert [package for package, count in packages.items() if count > 1] == []

    def test_a_pattern_is_a_host_with_or_without_a_path(self):
        assert [pattern for _, pattern in PATTERNS if not re.fullmatch(rf"{HOST}(?:/[\w./-]*)?", pattern)] == []


class TestLookup:
    def test_a_vendor_is_found_by_its_own_urls(self):
        for vendor, pattern in PATTERNS:
            host, slash, path = pattern.partition("/")
            assert first_in(f"https://{pattern}") == vendor.id
            assert first_in(f"'//{host.upper()}:443{slash}{path}?id=1'") == vendor.id
            assert first_in(f"https://eu1.{pattern}") == vendor.id or f"eu1.{host}" in {p for _, p in PATTERNS}

    def test_a_vendor_is_not_found_by_a_similar_url(self):
        for vendor, pattern in PATTERNS:
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

    @each(("address", "vendor"), [
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
        ("https://www.linkedin.com/in/acme", None),
        ("https://media.licdn.com/dms/image/1.jpg", None),
        ("https://snap.licdn.com/li.lms-analytics/insight.min.js", "linkedin-insight"),
        ("https://pbs.twimg.com/media/1.jpg", None),
        ("https://www.microsoft.com/", None),
        ("https://bucket.s3.amazonaws.com/app.js", "amazon-web-services"),
        ("https://script.hotjar.com/modules.js", "hotjar"),
        ("https://plausible.io/js/script.js", "plausible"),
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


# The most used entities in categories of trackers that aren't trackers: what they serve, pages can't do without.
NO_TRACKERS = {"auto-link-maker", "bigcommerce", "livejournal", "okta", "salesforce-com"}


class TestThirdParties:
    def test_knows_the_200_most_used_tracking_entities(self):
        known = {}
        for vendor, pattern in PATTERNS:
            if vendor.category not in {"other", "cdn"}:
                for name in suffixes(pattern.partition("/")[0]):
                    known.setdefault(name, vendor.id)
        entities = json.loads(THIRD_PARTIES.read_bytes())
        used = sorted((it for it in entities if it["category"] not in {"other", "cdn"} and "rank" in it), key=rank)
        missed = {it["id"] for it in used[:200] if not any(name in known for name in (*it["domains"], *wider(it)))}
        assert len(used) >= 200
        assert missed <= NO_TRACKERS

    def test_every_entity_is_known(self):
        known = catalogue()
        entities = [it for it in json.loads(THIRD_PARTIES.read_bytes()) if it["id"] not in known.unjudged]
        assert [host for it in entities for host in it["domains"] if not known.knows(host)] == []

    def test_harmless_ones_are_entities_of_no_other_category(self):
        others = {it["id"] for it in json.loads(THIRD_PARTIES.read_bytes()) if it["category"] == "other"}
        assert others.issuperset(resource("hosts")["harmless"])

    def test_no_entity_is_listed_next_to_the_vendor_that_it_is(self):
        ours = [
            Vendor("acme-pixel", "Acme Pixel", "marketing", ("px.acme.example",)),
            Vendor("rival", "Rival", "analytics", ("rival.example",)),
            Vendor("bucket", "Bucket", "marketing", ("b.cloud.example",)),
        ]
        entities = [
            Vendor("acme", "Acme", "marketing", ("acme.example", "acme-cdn.example")),
            Vendor("rival-inc", "Rival", "analytics", ("rival-cdn.example",)),
            Vendor("cloud", "Cloud", "other", ("cloud.example",)),
            Vendor("forum", "Forum", "social", ("forum.example", "forum-ads.example")),
        ]
        found = {vendor.id: vendor.domains for vendor in merged(ours, entities, ["acme.example", "forum.example"])}
        assert found == {
            "acme-pixel": ("px.acme.example",),
            "rival": ("rival.example", "rival-cdn.example"),
            "bucket": ("b.cloud.example",),
            "acme": ("acme-cdn.example",),
            "cloud": ("cloud.example",),
            "forum": ("forum-ads.example",),
        }

    def test_cookieless_and_necessary_vendors_keep_our_category(self):
        for host, category in {
            "plausible.io": "cookieless-analytics",
            "cdn.usefathom.com": "cookieless-analytics",
            "static.cloudflareinsights.com": "cookieless-analytics",
            "www.google.com/recaptcha/api.js": "widgets",
            "js.hcaptcha.com/1/api.js": "captcha",
            "browser.sentry-cdn.com": "error-monitoring",
            "js.stripe.com": "payments",
            "fonts.googleapis.com": "fonts",
            "maps.googleapis.com": "maps",
            "utteranc.es": "widgets",
            "giscus.app": "widgets",
            "cdn.commento.io": "other",
        }.items():
            assert catalogue().first_in(f"https://{host}").category == category, host


def rank(entity):
    return entity["rank"]


def wider(entity):
    """Yields every name at or above the entity's hosts."""
    return (name for host in entity["domains"] for name in suffixes(host))
