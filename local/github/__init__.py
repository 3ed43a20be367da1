"""A stand-in for GitHub: the few endpoints that we call, over real git repositories in a folder. Nothing of it is
deployed, and only GITHUB_API_URL makes it the code host.

It answers with the shapes of GitHub's published description, and looks like an Enterprise server: the REST API under
/api/v3, and pages for people, where its issues and files can be read.
"""
