"""A device that waits for a person's approval."""

from dataclasses import dataclass, field

from openassent.models import DeviceCode


@dataclass(frozen=True)
class DeviceLogin:
    """A started login. Show `code.verification_uri` and `code.user_code` to the person.

    code: what the service returned. `code.verification_uri_complete` contains the user code.
    client_id: the client that started it.
    code_verifier: proves that the device that redeems the code is the one that started.
    """

    code: DeviceCode
    client_id: str
    code_verifier: str = field(repr=False)
