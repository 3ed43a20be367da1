"""The code host: GitHub, a GitHub Enterprise server, or the local stand-in; only GITHUB_API_URL tells them apart.

`client` says what can be asked of it and `errors` what can go wrong. Nothing here stores a token, and nothing here logs
a name, a token or a body.
"""
