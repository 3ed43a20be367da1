"""The pages of our GitHub App at GitHub.

Imports only the settings, so that a page can ask whether the App is configured without importing GitHub's client.
"""

from urllib.parse import urlencode, urlsplit

from controlplane.platform.core.settings import settings

_SERVER_API_PATH = "/api/v3"


def is_configured() -> bool:
    """Returns whether people can connect repositories themselves."""
    location = settings.github_client_secret_arn or settings.github_client_secret_file
    return bool(settings.github_app_id and settings.github_app_slug and settings.github_client_id and location)


def installation_url(state: str) -> str:
    """Returns the page on which a person installs the App, or changes the repositories that it has access to."""
    folder = "github-apps" if settings.github_api_url.endswith(_SERVER_API_PATH) else "apps"
    return f"{base_url()}/{folder}/{settings.github_app_slug}/installations/new?{urlencode({'state': state})}"


def authorization_url(state: str, return_to: str) -> str:
    """Returns the page on which a person confirms who they are. GitHub then redirects to `return_to` with a code."""
    query = {"client_id": settings.github_client_id or "", "redirect_uri": return_to, "state": state}
    return f"{base_url()}/login/oauth/authorize?{urlencode(query)}"


def base_url() -> str:
    """Returns the address of the code host's pages."""
    api_url = settings.github_api_url
    if api_url.endswith(_SERVER_API_PATH):
        return api_url.removesuffix(_SERVER_API_PATH)
    parts = urlsplit(api_url)
    return f"{parts.scheme}://{parts.netloc.removeprefix('api.')}"
