"""Worker: tells an organization's webhooks and members what has happened."""
