"""Generates docs/openapi.json, the OpenAPI 3.1 document of all functions, from their routes.

FastAPI describes parameters and bodies. This package adds responses, errors, headers, examples, and security from each
route's declarations; its fixed parts are document.yaml, introduction.md, and documents.yaml. None of that is built at
run time. No function imports this package.

The `system` function serves a copy, which `scripts.reference` puts into its package.
"""
