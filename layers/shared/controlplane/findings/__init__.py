"""The inbox: findings of all sources, vendors and decisions about them, and issues opened from findings.

Imports `organizations`, `projects`, and `code_host`, where issues are opened.
"""
