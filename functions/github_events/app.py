"""Wiring of `github_events`, the worker of its queue."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from controlplane.platform.queues.messages import HostEvent, Queue, ReportPullRequest
from controlplane.platform.queues.worker import create_worker
from github_events.service import find_organization, process

type Accepted = HostEvent | ReportPullRequest

ACCEPTED: TypeAdapter[Accepted] = TypeAdapter(Annotated[HostEvent | ReportPullRequest, Field(discriminator="kind")])

handler = create_worker(Queue.GITHUB_EVENTS, ACCEPTED, process, find_organization)
