"""Audits a live website in a real browser: takes an address, returns a report with findings and a picture.

`audit_website` visits the site three times, each time as a new visitor: one who doesn't answer the banner, one who
refuses, and one who accepts. It needs Chromium and Playwright. It knows nothing of the service, the command line, or
AWS, so that all of them can use it.
"""

from openassent_audit.audit import audit_website
from openassent_audit.limits import Limits
from openassent_audit.network import Network
from openassent_audit.report import Audit

__all__ = ["Audit", "Limits", "Network", "audit_website"]
