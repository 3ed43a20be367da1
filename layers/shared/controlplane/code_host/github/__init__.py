"""The code host: GitHub, a GitHub Enterprise server, or the local fake; only GITHUB_API_URL differs.

`client` has the operations and `errors` the exceptions. This package never persists a token and never logs a name, a
token, or a body.
"""
