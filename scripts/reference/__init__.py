"""Generates the API reference from docs/openapi.json: a page for people, Markdown files and llms.txt for agents.

`python -m scripts.reference` writes them into the package of the `system` function, which serves them at /docs and
/llms.txt. They aren't committed: `make` writes them when the document has changed.

The page is Redoc. An operation's file has its requests and its part of the document. Subjects that the
document doesn't describe (credentials, pagination, versions) are in templates/introduction.md.
"""
