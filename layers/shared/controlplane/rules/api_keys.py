"""Rules of API keys: which key an ID names. The write checks the plan, the limit, and the admin's role."""

from controlplane.core.ids import KeyId
from controlplane.store.api_keys import UnknownKey


def own_key(organization_id: str, key_id: str) -> KeyId:
    """Returns the ID of a key of the organization. Raises UnknownKey, also for text that isn't the ID of a key."""
    parsed = KeyId.parse(key_id)
    if parsed is None or parsed.organization_id != organization_id:
        raise UnknownKey
    return parsed
