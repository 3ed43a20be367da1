"""Billing: an organization's plan, its limits and features, and the credits."""
