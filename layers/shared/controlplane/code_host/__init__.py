"""Connected repositories, the installations of the App at GitHub, and the client of GitHub.

Imports `organizations` and `projects`.
"""
