"""docs/openapi.json: one OpenAPI 3.1 document of all functions, made from their routes.

FastAPI describes parameters and bodies; answers, refusals, headers, examples and security are added here from what each
route declares, because at run time none of that is built. Nothing that a function imports stands here.

The document travels in the `system` function's package, which serves it: docs/openapi.json links there.
"""
