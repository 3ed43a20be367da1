"""Worker: runs a scan, from the commit at the code host to findings in the inbox."""
