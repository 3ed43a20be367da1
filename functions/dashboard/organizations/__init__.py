"""The pages of organizations: the overview, settings, members, invitations, and the audit log."""
