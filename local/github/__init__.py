"""A stand-in for GitHub: the few endpoints that we call, over real git repositories in a folder. Nothing of it is
deployed, and only GITHUB_API_URL makes it the code host.

Its responses have the properties of GitHub's published description that our client reads. It looks like an Enterprise
server: the REST API under /api/v3, and pages for people, on which repositories, issues, and pull requests are changed.
"""
