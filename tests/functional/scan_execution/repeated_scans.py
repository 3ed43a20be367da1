"""Several scans of one repository, one after another, with the real worker."""

from collections.abc import Callable, Mapping
from itertools import count

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox
from controlplane.findings.items import InboxItem, Status
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import ExecuteScan, Queue
from controlplane.scans import findings, reads
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import Access, ScanItem
from scan_execution.app import ScanMessage
from tests.support.audits import make_scan, scan_worker
from tests.support.code_host import FakeHost, archive
from tests.support.sqs import FakeSqs

type Files = Mapping[str, str | bytes]

GA = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>\n'
HOTJAR = '<script async src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
BING = '<script async src="https://bat.bing.com/bat.js"></script>\n'
META = '<script async src="https://connect.facebook.net/en_US/fbevents.js"></script>\n'
LINKEDIN = '<script async src="https://snap.licdn.com/li.lms-analytics/insight.min.js"></script>\n'
# Asks for consent, so that no finding about the whole project is reported.
CONSENT = {"src/consent.js": "CookieConsent.run({});\n"}
USER = "usr_0000000000000000"


def page(*scripts: str) -> str:
    return f"<!doctype html>\n<html><head>\n{''.join(scripts)}</head></html>\n"


# Five trackers, each a finding, plus one finding if nothing asks for consent.
PAGE = page(GA, HOTJAR, META, LINKEDIN, BING)


class Audit:
    """Scans a repository, one minute after another."""

    def __init__(
        self, repository: RepositoryItem, sqs: FakeSqs, advance: Callable[[float], None], *, is_scanned: bool = True
    ) -> None:
        self.repository, self._sqs, self._advance = repository, sqs, advance
        if is_scanned:
            make_scan(repository)  # uses the free preview
        self._host = FakeHost()
        self._handler = scan_worker(self._host)
        self._commits = (f"{number:040x}" for number in count(1))

    def start(self, access: Access = "full") -> ScanItem:
        self._advance(60)
        repository = repositories.get_repository(self.repository.repository_id)
        return make_scan(repository, status="queued", access=access, commit=next(self._commits))

    def run(self, scan: ScanItem, files: Files) -> ScanItem:
        self._advance(60)
        self._host.archives = {scan.head_commit_sha: archive({**CONSENT, **files})}
        self.deliver(ExecuteScan(scan_id=scan.scan_id))
        done = reads.get_scan(scan.scan_id)
        assert done.status == "completed", done
        return done

    def scan(self, files: Files, access: Access = "full") -> ScanItem:
        return self.run(self.start(access), files)

    def deliver(self, message: ScanMessage) -> None:
        self._advance(60)
        self._sqs.letters.clear()
        queue = Queue.SCAN_EXECUTION
        messages.send(queue.value, message.model_dump(by_alias=True))
        self._sqs.deliver(self._sqs.at(queue.url)[0], self._handler, queue.dead_letters_url)

    def items(self) -> list[InboxItem]:
        listed = inbox.list_items(self.repository.organization_id, None, 100, None).items
        return [inbox.get_item(item.item_id) for item in listed]

    def item(self, title: str = "Google Analytics") -> InboxItem:
        (found,) = [item for item in self.items() if title in item.title]
        return found

    def statuses(self) -> dict[str, Status]:
        return {item.title.partition(" is ")[0]: item.status for item in self.items()}

    def decide(self, status: Status, title: str = "Google Analytics") -> InboxItem:
        self._advance(60)
        item = self.item(title)
        return inbox.change_status(item, status, item.version, USER, "because")


def found_by(scan: ScanItem) -> list[FindingItem]:
    return findings.list_findings(scan.scan_id, scan.findings_attempt, 500)
