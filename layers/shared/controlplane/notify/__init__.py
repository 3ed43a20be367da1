"""Emails to people, with their choices, and webhooks to their systems, with their deliveries.

Imports `people` and `organizations`.
"""
