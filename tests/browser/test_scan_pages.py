"""A person lists, starts, follows, reads, and downloads scans, on a desktop and on a phone."""

import json
from collections.abc import Callable

from tests.browser.conftest import Stack, Visit


def test_a_person_starts_a_scan_and_reads_its_report(stack: Stack, visit: Callable[..., Visit]):
    stack.scan()
    person = visit()
    slug = stack.credentials["organizations"][0]["slug"]
    person.open(f"/organizations/{slug}/scans")
    person.sign_in(stack.person())
    # The demo has a past scan, and starts another one.
    person.page.get_by_role("row", name="Completed").nth(1).wait_for()
    person.look("Scans", "scans")
    person.press("Start scan")
    person.look("", "scan-started")
    # The page follows the scan without being reloaded, and then shows the report.
    person.page.get_by_text("Still present").wait_for()
    person.look("Scan of storefront", "scan-report")
    with person.page.expect_download() as download:
        person.page.get_by_role("link", name="SARIF").click()
    log = json.loads(download.value.path().read_text())
    assert log["runs"][0]["results"]
    person.open(f"/organizations/{slug}/scans")
    person.page.get_by_text("Show the numbers").click()
    person.look("Scans", "scans-trend")
    person.page.get_by_label("Status").select_option("failed")
    person.press("Filter")
    person.page.get_by_text("No scans match").wait_for()
    person.look("Scans", "scans-none")

    phone = visit("phone", "dark")
    phone.open(f"/organizations/{slug}/scans")
    phone.sign_in(stack.person())
    phone.look("Scans", "scans")
    # The last one is the demo's past scan, which the one before is compared with.
    phone.page.get_by_label("Repository", exact=True).select_option("demo-shop/storefront")
    phone.press("Filter")
    phone.page.wait_for_url("**/scans?repository=rep_*")
    phone.page.get_by_role("row").get_by_role("link").nth(-2).click()
    phone.look("Scan of storefront", "scan-compared")
    phone.page.get_by_role("link", name="previous scan").click()
    phone.page.get_by_role("link", name="Unlock findings").click()
    phone.look("Unlock findings", "scan-unlock")
