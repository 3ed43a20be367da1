"""An in-memory code host, with the operations of `controlplane.code_host.github.client.CodeHost` that scans use."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from controlplane.code_host.github.errors import BranchGone, CommitGone, RepositoryGone, TarballTooLarge

SHA = "1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5"


@dataclass
class FakeHost:
    """`heads` by (owner, name, branch), `archives` by commit. The `failures` are raised first, one per call."""

    heads: dict[tuple[str, str, str], str] = field(default_factory=dict)
    archives: dict[str, bytes] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    installations: list[int] = field(default_factory=list)

    def connect(self, installation_id: int) -> "FakeHost":
        self.installations.append(installation_id)
        return self

    def get_branch_head(self, owner: str, name: str, branch: str) -> str:
        self._fail("get_branch_head")
        if (owner, name, branch) in self.heads:
            return self.heads[owner, name, branch]
        known = any(head[:2] == (owner, name) for head in self.heads)
        raise BranchGone if known else RepositoryGone

    def stream_tarball(self, owner: str, name: str, sha: str, *, limit_bytes: int = 0) -> Iterator[bytes]:
        self._fail("stream_tarball")
        if sha not in self.archives:
            raise CommitGone
        return self._pieces(self.archives[sha], limit_bytes or len(self.archives[sha]))

    @staticmethod
    def _pieces(content: bytes, limit_bytes: int) -> Iterator[bytes]:
        for end in range(1_000, len(content) + 1_000, 1_000):
            if min(end, len(content)) > limit_bytes:
                raise TarballTooLarge(limit_bytes)
            yield content[end - 1_000 : end]

    def _fail(self, operation: str) -> None:
        self.asked.append(operation)
        if self.failures:
            raise self.failures.pop(0)


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """Packs the files as a code host does: a gzipped tar with a single top-level folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": SHA}) as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(f"acme-shop-1f0c2b9/{path}")
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
