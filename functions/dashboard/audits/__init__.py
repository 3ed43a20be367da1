"""Pages of website audits."""
