"""Worker: ingests findings from outside: vendors detected at runtime, advisories, and reports of website audits."""
