"""Device authorization for command-line tools, and a user's own sessions."""
