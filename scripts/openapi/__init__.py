"""docs/openapi.json: one OpenAPI 3.1 document of all functions, made from their routes.

FastAPI describes parameters and bodies; answers, refusals, headers, examples and security are added here from what each
route declares, because at run time none of that is built. No function imports this package.

The `system` function serves a copy, which `scripts.reference` puts into its package.
"""
