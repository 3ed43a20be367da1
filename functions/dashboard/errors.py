"""Errors of the sign-in provider. In a separate module, because importing `provider` is slow."""

from controlplane.core.errors import InvalidPayload, ServiceUnavailable


class ProviderUnavailable(ServiceUnavailable):
    message = "The sign-in service is unavailable. Try again in a minute."


class SignInRejected(InvalidPayload):
    """The provider rejected the code, or its response can't be trusted. `reason` is only logged."""

    message = "Sign-in failed. Try again."
