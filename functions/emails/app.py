"""Wiring of `emails`, the worker of its queue."""

from controlplane.notify.mail_messages import EMAIL_MESSAGES
from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import create_worker
from emails.service import process

handler = create_worker(Queue.EMAILS, EMAIL_MESSAGES, process)
