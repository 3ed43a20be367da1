"""Worker: audits a website in a real browser, and reports to the intake of findings."""
