"""Waits for runs of audits."""

from openassent._async import _operations
from openassent._async.scans import pause
from openassent._retries import monotonic
from openassent.models import AuditRun, AuditRunReport

_POLL_SECONDS = 5.0


class AsyncAudits(_operations.AsyncAudits):
    """Audits of a project's websites. Give the result of `start` to `wait`."""

    async def wait(self, run: AuditRun | AuditRunReport, *, timeout: float | None = None) -> AuditRunReport:
        """Waits until a run has ended, and returns it: `completed` with an outcome, or `failed`.

        timeout: in seconds. By default, it waits as long as the run takes.

        Raises WaitTimedOut if the timeout is over first.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            found = await self.run(run.project_id, run.audit_id, run.run_id)
            if found.status != "pending":
                return found
            await pause(_POLL_SECONDS, deadline, "run")
