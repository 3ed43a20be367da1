"""Worker: tells an organization's webhooks what has happened, and passes it on to `emails`."""
