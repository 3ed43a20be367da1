"""Determines the ids and secrets that the product draws, so that a run can be repeated."""

import random
import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest import mock

_below_the_product: ContextVar[bool] = ContextVar("below the product", default=False)


@contextmanager
def below_the_product() -> Iterator[None]:
    """While open, a call is being made: what the client draws, for its retries for example, is as usual."""
    token = _below_the_product.set(True)
    try:
        yield
    finally:
        _below_the_product.reset(token)


@contextmanager
def determined(source: Callable[[], random.Random | None]) -> Iterator[None]:
    """While open, the product's ids and secrets are drawn from this source, if there is one."""

    def pinned(real: Callable[..., Any], draw: Callable[..., Any]) -> Callable[..., Any]:
        def drawn_or_real(*given: Any) -> Any:
            drawn = None if _below_the_product.get() else source()
            return real(*given) if drawn is None else draw(drawn, *given)

        return drawn_or_real

    def new_uuid(drawn: random.Random) -> uuid.UUID:
        return uuid.UUID(bytes=drawn.randbytes(16), version=4)

    with (
        mock.patch.object(secrets, "token_bytes", pinned(secrets.token_bytes, random.Random.randbytes)),
        mock.patch.object(secrets, "randbelow", pinned(secrets.randbelow, random.Random.randrange)),
        mock.patch.object(secrets, "choice", pinned(secrets.choice, random.Random.choice)),
        mock.patch.object(uuid, "uuid4", pinned(uuid.uuid4, new_uuid)),
    ):
        yield
