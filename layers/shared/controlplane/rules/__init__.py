"""Business rules that both the API and the pages apply, one module per subject. They know no HTTP and no templates.

A rule that only one function needs stays in that function's `service.py`.
"""
