"""Plans, credits, and charges. Imports `organizations`, and `api_keys`, of which plans have limits."""
