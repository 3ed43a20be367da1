"""Runs what the product overlaps in one thread, so that the order of its calls is the same in each run."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self

import pytest

from controlplane.platform.table import parallel


class InOrder:
    """A pool that runs each task when it is submitted."""

    def __init__(self, max_workers: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(task(*arguments))
        except BaseException as error:  # noqa: BLE001 (raised where the result is awaited)
            done.set_exception(error)
        return done


@contextmanager
def in_order(executor: Callable[..., InOrder] = InOrder) -> Iterator[None]:
    """While open, the product's pools are these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "ThreadPoolExecutor", executor)
        yield
