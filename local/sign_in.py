"""The user pool's sign-in page on this machine, with a form that creates an account, which MiniStack's page lacks.

The pool's metadata leads here. As in Cognito, an address that was just confirmed is verified: no email is sent.
"""

from typing import Annotated, Any

import requests
from botocore.exceptions import ClientError
from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from local import pages

PREFIX = "/sign-in-stand-in"
METADATA = ".well-known/openid-configuration"
_CREATE = "create"
_TIMEOUT_SECONDS = 10
_TITLES = {True: "Create an account", False: "Sign in"}

Fields = Annotated[dict[str, str], Depends(pages.form)]


def create_app(client: Any, endpoint: str, pool_id: str) -> FastAPI:
    """Returns the ASGI app for a user pool of MiniStack. It can be mounted at any path. client: of `cognito-idp`."""
    app = FastAPI(openapi_url=None)

    @app.get(f"/{METADATA}")
    def describe(request: Request) -> dict[str, Any]:
        found = requests.get(f"{endpoint}/{pool_id}/{METADATA}", timeout=_TIMEOUT_SECONDS).json()
        own = {"authorization_endpoint": f"{pages.base_url(request)}/authorize", "prompt_values_supported": [_CREATE]}
        return {**found, **own}

    @app.get("/authorize")
    def show(request: Request) -> HTMLResponse:
        return _page(request, dict(request.query_params))

    @app.post("/authorize")
    def submit(request: Request, fields: Fields) -> Response:
        if fields.get("prompt") == _CREATE:
            try:
                create_account(client, pool_id, fields.get("email", ""), fields.get("password", ""))
            except ClientError as failure:
                return _page(request, fields, failure.response["Error"]["Message"])
        sent = {**fields, "username": fields.get("email", "")}
        reply = requests.post(f"{endpoint}/login", sent, allow_redirects=False, timeout=_TIMEOUT_SECONDS)
        location = reply.headers.get("location")
        if location is None:
            return _page(request, fields, "The email address or the password is wrong.")
        return RedirectResponse(location, 303)

    return app


def create_account(client: Any, pool_id: str, email: str, password: str, name: str = "") -> None:
    """Creates an account with a verified address. Raises ClientError, for example for a password that is too short."""
    attributes = {"email": email, "email_verified": "true", "name": name or email.partition("@")[0]}
    client.admin_create_user(
        UserPoolId=pool_id,
        Username=email,
        UserAttributes=[{"Name": key, "Value": value} for key, value in attributes.items()],
        MessageAction="SUPPRESS",
    )
    try:
        client.admin_set_user_password(UserPoolId=pool_id, Username=email, Password=password, Permanent=True)
    except ClientError:
        client.admin_delete_user(UserPoolId=pool_id, Username=email)
        raise


def _page(request: Request, fields: dict[str, str], problem: str = "") -> HTMLResponse:
    """Shows the form that `prompt` asks for. The fields are those of the authorization request, which it keeps."""
    creates = fields.get("prompt") == _CREATE
    kept = {name: value for name, value in fields.items() if name not in {"email", "password", "prompt"}}
    return pages.page(
        request,
        "sign-in.html",
        _TITLES[creates],
        400 if problem else 200,
        creates=creates,
        fields=kept,
        email=fields.get("email", ""),
        problem=problem,
    )
