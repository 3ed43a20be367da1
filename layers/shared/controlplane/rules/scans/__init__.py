"""Rules of scans."""
