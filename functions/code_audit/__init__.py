"""Code audit: connected repositories, scans of them, and what the scans found."""
