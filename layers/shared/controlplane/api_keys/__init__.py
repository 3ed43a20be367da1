"""API keys of organizations: their restrictions, secrets, rolls, use, and leaks.

Imports `organizations`, `people` for leaked tokens, and `projects`, which a key can be restricted to.
"""
