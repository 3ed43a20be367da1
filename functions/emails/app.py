"""Wiring of `emails`, the worker of its queue."""

from controlplane.queues.mail_messages import EMAIL_MESSAGES
from controlplane.queues.messages import Queue
from controlplane.queues.worker import create_worker
from emails.service import process

handler = create_worker(Queue.EMAILS, EMAIL_MESSAGES, process)
