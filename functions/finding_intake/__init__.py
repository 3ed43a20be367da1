"""Worker: ingests findings from external sources, namely vendors detected at runtime and advisories."""
