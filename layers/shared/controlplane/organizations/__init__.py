"""Organizations, members, invitations, and the audit log. Imports `people`."""
