"""Generates the API reference from docs/openapi.json: a page for people, Markdown files and llms.txt for agents.

`python -m scripts.reference` writes them into the package of the `system` function, which serves them at /docs and
/llms.txt. They aren't committed: `make` writes them when the document has changed.

`reader` reads the OpenAPI document into `document`'s model, with `fields` in words, `samples` of values, and `calls` of
the command line and Python; `markdown` renders the files and `site` collects them. The page is Redoc. What the document
can't say (credentials, pagination, versions) is in templates/introduction.md.
"""
