"""Creates the demo's users, with their passwords, in the local user pool."""

import secrets
from typing import Any

from local import environment

_WORDS = 4
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


def ensure_people(endpoint: str, pool_id: str, users: list[dict[str, Any]]) -> None:
    """Lets every user of the demo sign in, and stores the password under `password`. Known passwords are kept."""
    client = environment.create_client("cognito-idp", endpoint)
    found = client.list_users(UserPoolId=pool_id)["Users"]
    known = {it["Value"] for user in found for it in user["Attributes"] if it["Name"] == "email"}
    for user in users:
        if user["email"] in known:
            continue
        user.setdefault("password", _new_password())
        attributes = {"email": user["email"], "email_verified": "true", "name": user["name"]}
        client.admin_create_user(
            UserPoolId=pool_id,
            Username=user["email"],
            UserAttributes=[{"Name": name, "Value": value} for name, value in attributes.items()],
            MessageAction="SUPPRESS",
        )
        client.admin_set_user_password(
            UserPoolId=pool_id, Username=user["email"], Password=user["password"], Permanent=True
        )


def _new_password() -> str:
    """Returns four groups of four letters: easy to type, with 79 bits of entropy."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(_WORDS))
