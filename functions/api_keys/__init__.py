"""API keys of organizations: shown once, hashed at rest, rolled or revoked immediately."""
