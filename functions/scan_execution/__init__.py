"""Worker: runs a scan, from downloading the commit to publishing findings in the inbox."""
