"""Imports FastAPI without the parts that no request needs. Import this before anything that imports it.

Every imported module slows down cold starts. FastAPI loads the pydantic models of the OpenAPI document, OpenTelemetry's
API, and pydantic's version 1 (for a check at each route), which together take longer than our own code. Here they are
replaced by placeholders that load the real module on first use, so the document can still be generated and telemetry
still be enabled. pydantic's search for plugins in all installed distributions is disabled, because we use no plugins.
In all else, the libraries behave as usual. If one has changed in an incompatible way, it is imported as usual, which is
slower, and `tests/unit/test_lazy_imports.py` fails.

Garbage collection is disabled from here to `finish`: imported modules stay, and scanning them repeatedly is waste. The
methods of dataclasses aren't compiled again, see `dataclass_code`.
"""

import gc

gc.disable()

from controlplane.platform.core import dataclass_code  # noqa: E402

dataclass_code.install()

import importlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from types import ModuleType  # noqa: E402
from typing import Any  # noqa: E402

# Without it, FastAPI requests a telemetry provider in every request, and thereby loads OpenTelemetry.
TELEMETRY_OFF: Any = {"tracing": False, "metrics": False, "logs": False}

_OPENAPI_MODELS = "fastapi.openapi.models"
# A list of 50 items creates a fifth of these. Python's default collects twice during that, and frees nothing.
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
# Imports zipfile and csv. pydantic uses it to find plugins.
_METADATA = "importlib.metadata"
_TELEMETRY = (
    "opentelemetry",
    "opentelemetry.context",
    "opentelemetry._logs",
    "opentelemetry.metrics",
    "opentelemetry.propagate",
    "opentelemetry.propagators",
    "opentelemetry.propagators.textmap",
    "opentelemetry.trace",
)


class _Placeholder(type):
    """Placeholder for a name in a module that isn't imported. Calling it or reading an attribute imports the module."""

    _original: tuple[str, str]

    def _load(cls) -> Any:
        module, name = cls._original
        return getattr(importlib.import_module(module), name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_original" not in cls.__dict__:  # FastAPI's subclass of a placeholder: an ordinary class
            return super().__call__(*args, **kwargs)
        if sys.modules.get(cls._original[0]).__class__ is _LazyModule:
            # Called during FastAPI's own import, for a default that only its OAuth2 scheme without flows would use.
            return super().__call__()
        return cls._load()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(cls._load(), name)

    def __instancecheck__(cls, instance: Any) -> bool:
        if "_original" not in cls.__dict__:
            return super().__instancecheck__(instance)
        return isinstance(instance, cls._load())

    # Operations that annotations perform on it.
    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class _LazyModule(ModuleType):
    """A module that is imported when one of its names is used, not when it is bound by an import statement."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        placeholder = _Placeholder(name, (), {"_original": (self.__name__, name)})
        setattr(self, name, placeholder)
        return placeholder


def _context_value(key: str, context: Any = None) -> Any:
    """Replaces OpenTelemetry's `get_value`. No value can be set while OpenTelemetry isn't loaded."""
    loaded = sys.modules.get("opentelemetry.context")
    return loaded.get_value(key, context) if loaded else None


def _lazy_modules() -> dict[str, ModuleType]:
    modules: dict[str, ModuleType] = {name: _LazyModule(name) for name in (_OPENAPI_MODELS, _METADATA, *_TELEMETRY)}
    for name in _TELEMETRY[1:]:
        parent, _, child = name.rpartition(".")
        setattr(modules[parent], child, modules[name])
    # Called while FastAPI is imported and in every request, so these must not load anything.
    modules["opentelemetry.context"].__dict__.update(create_key=lambda name: f"{name}-key", get_value=_context_value)
    return modules


@contextmanager
def _without_texts() -> Iterator[None]:
    """Replaces the editor documentation of some 700 FastAPI parameters with a single empty text during the import."""
    module = importlib.import_module("annotated_doc")
    ordinary = module.Doc
    empty = ordinary("")
    module.Doc = lambda _: empty  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.Doc = ordinary  # type: ignore[attr-defined]


def _import_fastapi() -> bool:
    """Imports FastAPI without its optional parts. Returns False if it was already imported or this failed."""
    if "fastapi" in sys.modules or any(name in sys.modules for name in _TELEMETRY):
        return False
    placeholders = {name: module for name, module in _lazy_modules().items() if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        with _without_texts():
            importlib.import_module("fastapi")
    except Exception:  # noqa: BLE001 (after any error, FastAPI is imported as usual)
        _unload("fastapi")
        return False
    finally:
        _remove_placeholders(placeholders)
    return True


def _unload(package: str) -> None:
    """Removes the package from sys.modules, so that the next import loads it again."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _remove_placeholders(modules: dict[str, ModuleType]) -> None:
    """Removes placeholders from sys.modules. The library keeps those it bound; later imports get the real modules."""
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


def _skip_pydantic_1() -> None:
    """Skips FastAPI's check whether a model is from pydantic 1, which is impossible unless pydantic.v1 is loaded."""

    def only_when_loaded(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda value: "pydantic.v1" in sys.modules and check(value)

    for module, name in (
        ("fastapi._compat.shared", "is_pydantic_v1_model_class"),
        ("fastapi._compat.shared", "is_pydantic_v1_model_instance"),
        ("fastapi.encoders", "is_pydantic_v1_model_instance"),
    ):
        holder = sys.modules.get(module)
        check = getattr(holder, name, None)
        if check is not None:
            setattr(holder, name, only_when_loaded(check))


def finish() -> None:
    """Restores normal imports, after the last one. Garbage collection ignores all existing objects."""
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    gc.enable()


@contextmanager
def resumed() -> Iterator[None]:
    """Speeds up imports after `finish` in the same way."""
    gc.disable()
    try:
        yield
    finally:
        finish()


os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
SLIM_FASTAPI = _import_fastapi()
_skip_pydantic_1()
