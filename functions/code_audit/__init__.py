"""Code audit: connected repositories, their scans, and the findings."""
