"""Organization API keys: shown once, hashed at rest, replaced or revoked at once."""
