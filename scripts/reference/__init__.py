"""The reference for people and for agents, generated from docs/openapi.json: a page, and Markdown of everything in it.

`python -m scripts.reference` writes what the `system` function serves at /docs and /llms.txt into its package, so that
nothing is rendered at run time; `--check` compares instead, for `make lint`.

`reader` reads the OpenAPI document into what a reader is told (`document`), with `fields` in words and `samples` of
values; `site` writes it down, with `rendering` for the page and `markdown` for the rest. What the document cannot say
(credentials, pagination, versions) stands in templates/introduction.md.
"""
