"""Health, regions, the calling credential, and the API's own documentation."""
