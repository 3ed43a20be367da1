"""The messages that the queue of `scan_execution` accepts."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.platform.queues.messages import ExecuteScan, PublishScan

type ScanMessage = ExecuteScan | PublishScan

ACCEPTED: TypeAdapter[ScanMessage] = TypeAdapter(Annotated[ExecuteScan | PublishScan, Field(discriminator="kind")])
