"""One request to the stand-in, and who may send it."""

import json
from typing import Any

from starlette.requests import Request

from local.github.repositories import GitRepository
from local.github.shapes import Address
from local.github.stand_in import Denied, StandIn

API = "/api/v3"


class Call:
    """One request and its body."""

    def __init__(self, stand_in: StandIn, request: Request, body: bytes) -> None:
        self.stand_in = stand_in
        self.parameters: dict[str, str] = request.path_params
        self.query = dict(request.query_params)
        self.authorization = request.headers.get("Authorization", "")
        self.path = request.url.path
        base = base_url(request)
        self.address = Address(base, base + API)
        try:
            self.body: Any = json.loads(body) if body else None
        except ValueError:
            self.body = None

    def repository(self, permission: str, level: str = "read") -> GitRepository:
        token = self.stand_in.check_token(self.authorization)
        owner, name = self.parameters["owner"], self.parameters["repo"]
        return self.stand_in.get_repository(token, owner, name, permission, level)


def base_url(request: Request) -> str:
    """Returns the URL at which the caller reached the stand-in."""
    return f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"


def number(text: str) -> int:
    if not text.isdecimal():
        raise Denied(404, "Not Found")
    return int(text)
