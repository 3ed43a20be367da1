"""Errors of the sign-in provider. In a separate module, because importing `provider` is slow."""

from controlplane.platform.core.errors import InvalidPayload, RouteNotFound, ServiceUnavailable


class NoPage(RouteNotFound):
    """There is no such page. Pages raise it instead of RouteNotFound, which names the API."""

    message = "The link may be mistyped, or what it led to was deleted or renamed."


class ProviderUnavailable(ServiceUnavailable):
    title = "You can't sign in at the moment"
    message = "The sign-in service is unavailable. Try again in a minute."


class SignInRejected(InvalidPayload):
    """The provider rejected the code, or its response can't be trusted. `reason` is only logged."""

    title = "The sign-in failed"
    message = "Sign-in failed. Try again."
