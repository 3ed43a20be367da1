"""The vendors that the code loads, as the analysis sees them: gated or not, once per file."""

from analysis_testing.in_process import analyze_files
from openassent_analysis.inventory.inventories import Inventory
from openassent_analysis.inventory.stocktaking import with_loads

HOTJAR = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';\n"
POSTHOG = "import posthog from 'posthog-js';\nposthog.init('phc_1');\n"


def loads(files: dict[str, str]) -> dict[str, tuple[int, list[str]]]:
    found = analyze_files([(path, content.encode()) for path, content in files.items()]).loads
    return {vendor: (it.files, it.hosts) for vendor, it in found.items()}


class TestLoads:
    def test_a_gated_vendor_counts_like_an_ungated_one(self):
        gated = f"if (consent.given) {{ {HOTJAR} }}"
        assert analyze_files([("a.js", gated.encode())]).findings == []
        assert loads({"a.js": gated, "b.js": HOTJAR}) == {"hotjar": (2, ["static.hotjar.com"])}

    def test_a_file_counts_once_and_few_hosts_are_kept(self):
        many = "".join(HOTJAR.replace("static", f"s{number}") for number in range(9))
        assert loads({"a.js": HOTJAR * 3})["hotjar"] == (1, ["static.hotjar.com"])
        files, hosts = loads({"a.js": many})["hotjar"]
        assert (files, len(hosts)) == (1, 3)

    def test_a_package_that_is_started_has_no_host(self):
        assert loads({"a.js": POSTHOG}) == {"posthog": (1, [])}

    def test_a_consent_manager_counts_wherever_its_address_is(self):
        page = '<script src="https://consent.cookiebot.com/uc.js"></script>'
        assert loads({"a.html": page}) == {"cookiebot": (1, ["consent.cookiebot.com"])}

    def test_a_link_is_no_load(self):
        assert (
            loads({"a.html": '<a href="https://www.hotjar.com/">Hotjar</a>', "b.js": "// https://hotjar.com/\n"}) == {}
        )

    def test_a_vendor_that_no_manifest_names_is_added(self):
        result = analyze_files([("main.js", HOTJAR.encode())])
        (vendor,) = with_loads(Inventory(files=1), result.loads).vendors
        assert (vendor.name, vendor.packages) == ("Hotjar", ())
        assert (vendor.loading_files, vendor.ungated_files) == (1, 1)
