"""Worker: from a request for a scan to the scan."""
