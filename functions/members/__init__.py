"""Members of an organization, and invitations to it."""
