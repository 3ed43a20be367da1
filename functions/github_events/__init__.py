"""Worker: acts on what has changed on GitHub, and reports scans there."""
