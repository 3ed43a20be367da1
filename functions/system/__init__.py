"""Health, regions, the calling credential, and the API's description of itself."""
