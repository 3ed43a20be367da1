"""The pages of scans."""
