"""Projects with their consent instance, websites, and trusted origins. Imports `organizations`."""
