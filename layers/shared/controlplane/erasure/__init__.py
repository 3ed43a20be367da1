"""Deletion of organizations and accounts, the cleanup of what they leave, and copies of personal data.

Imports every subject that leaves something.
"""
