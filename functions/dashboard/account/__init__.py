"""A person's own pages: the profile, sessions, devices, and the deletion of the account."""
