"""Worker: creates the scan for a scan request."""
