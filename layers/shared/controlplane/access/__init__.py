"""The checks of a caller: credentials, sessions of the browser, roles, rate limits, and repeated requests.

Imports the people, organizations, and API keys that it checks.
"""
