"""Pages for people without an account: what the service is, a check of pasted code, prices, and the status."""
