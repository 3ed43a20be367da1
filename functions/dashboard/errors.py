"""What comes of a provider that does not do its part. By themselves, because `provider` loads libraries."""

from controlplane.errors import InvalidPayload, ServiceUnavailable


class ProviderUnavailable(ServiceUnavailable):
    message = "The sign-in service is unavailable. Try again in a minute."


class SignInRejected(InvalidPayload):
    """The provider refused the code, or what it answered cannot be trusted. The reason is for the log alone."""

    message = "Sign-in failed. Try again."
