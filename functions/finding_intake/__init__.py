"""What others found, taken in: vendors seen at runtime, and advisories."""
