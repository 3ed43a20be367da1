"""The state that all sections of a run share: the staged packages, the functions, the certificate, the targets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import package
from benchmarks.environment import PEER_TABLE, environments
from benchmarks.machine import certificate, engine
from benchmarks.measured import World, populate_peer
from benchmarks.package import Package
from benchmarks.process import Recording, Target
from benchmarks.wire import Recorder, Replay, Server


@dataclass(frozen=True)
class Bench:
    folder: Path
    ours: Package
    naive_libraries: Path
    peers: Path
    functions: dict[str, dict[str, str]]
    tls: tuple[Path, Path]
    peer_roots: Path

    @classmethod
    def prepare(cls, folder: Path) -> Bench:
        """Stages every package below `folder`."""
        ours = package.stage_ours(folder / "ours")
        naive = package.stage_naive(folder / "naive")
        peers = shutil.copytree(package.PEERS, folder / "peers", ignore=shutil.ignore_patterns("__pycache__"))
        tls = certificate(folder)
        peer_roots = package.trust(ours, naive, tls[0], folder)
        functions = {group: it for group, it in environments().items() if group in ours.functions}
        return cls(folder, ours, naive, Path(peers), functions, tls, peer_roots)

    def our_target(self, group: str, address: str) -> Target:
        """Returns a target that runs one of our functions, with DynamoDB at `address`."""
        target = Target(group, self.ours.folders(group), f"{group}.app", self.functions[group])
        return target.with_environment(AWS_ENDPOINT_URL_DYNAMODB=address)

    def naive_target(self, address: str) -> Target:
        environment = {
            "TABLE_NAME": PEER_TABLE,
            "AWS_ENDPOINT_URL_DYNAMODB": address,
            "AWS_CA_BUNDLE": str(self.peer_roots),
        }
        return Target("naive", (self.peers, self.naive_libraries), "naive", environment)

    def floor_target(self, recording: Recording, address: str) -> Target:
        environment = {
            "FLOOR_RECORDING": str(recording.save(self.folder)),
            "AWS_ENDPOINT_URL_DYNAMODB": address,
            "AWS_CA_BUNDLE": str(self.peer_roots),
        }
        return Target(f"floor of {recording.name}", (self.peers, self.naive_libraries), "floor", environment)

    @contextmanager
    def recorded_world(self) -> Iterator[tuple[World, Recorder, str, str]]:
        """Yields a populated engine behind a recorder: (world, recorder, recorder's address, project of the peer)."""
        with engine() as url:
            recorder = Recorder(url)
            with Server(recorder) as server:
                yield World(url), recorder, server.url, populate_peer()

    @contextmanager
    def replaying(self, recordings: list[Recording], *, tls: bool) -> Iterator[str]:
        """Runs the stand-in that replays the recordings. Yields its address; append a recording's name to select it."""
        replay = Replay()
        for recording in recordings:
            replay.add(recording.name, recording.calls)
        with Server(replay, self.tls if tls else None) as server:
            yield server.url
