"""Imports FastAPI and botocore without the parts no request needs. Import this before anything that imports them.

A cold start pays for every module. FastAPI loads the pydantic models of the OpenAPI document, OpenTelemetry's API, and
pydantic's version 1 (for a check at each route), which together cost more than our own code. Here placeholders stand in
for them and load the real thing when somebody uses it: the document can still be made, and telemetry still be turned
on. botocore writes documentation of a client's methods, for `help`; it goes without. pydantic searches all installed
distributions for plugins; there are none. None of it changes what a library does. Where one has changed so that this
does not fit, it is imported as usual, only slower, and `tests/unit/test_diet.py` fails.

Garbage collection is off from here to `finish`: what is imported stays, and searching it again and again is waste.
"""

import gc

gc.disable()

import importlib  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from types import ModuleType  # noqa: E402
from typing import Any  # noqa: E402

# Given to FastAPI: it asks for a telemetry provider at every request otherwise, which loads OpenTelemetry.
TELEMETRY_OFF: Any = {"tracing": False, "metrics": False, "logs": False}

_OPENAPI_MODELS = "fastapi.openapi.models"
# pydantic and urllib3 would ask it for plugins and versions; it brings zipfile and csv.
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
    """Stands for a name of a module that was not imported; calling it, or asking it for anything, imports that."""

    _original: tuple[str, str]

    def _load(cls) -> Any:
        module, name = cls._original
        return getattr(importlib.import_module(module), name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_original" not in cls.__dict__:  # a subclass that FastAPI made of it: an ordinary class
            return super().__call__(*args, **kwargs)
        if sys.modules.get(cls._original[0]).__class__ is _LaterModule:
            # FastAPI itself, while it is imported: a default that only its own OAuth2 scheme without flows would use.
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

    # What annotations do with it.
    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__


class _LaterModule(ModuleType):
    """A module that is imported when one of its names is used, and not when it is bound."""

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
    """OpenTelemetry's `get_value`: nobody can have set one while OpenTelemetry is not loaded."""
    loaded = sys.modules.get("opentelemetry.context")
    return loaded.get_value(key, context) if loaded else None


def _later_modules() -> dict[str, ModuleType]:
    modules: dict[str, ModuleType] = {name: _LaterModule(name) for name in (_OPENAPI_MODELS, _METADATA, *_TELEMETRY)}
    for name in _TELEMETRY[1:]:
        parent, _, child = name.rpartition(".")
        setattr(modules[parent], child, modules[name])
    # Called while FastAPI is imported and at every request: too early to load anything for.
    modules["opentelemetry.context"].__dict__.update(create_key=lambda name: f"{name}-key", get_value=_context_value)
    return modules


@contextmanager
def _without_texts() -> Iterator[None]:
    """FastAPI annotates some 700 of its parameters with prose for editors; one empty text stands for all of them."""
    module = importlib.import_module("annotated_doc")
    ordinary = module.Doc
    empty = ordinary("")
    module.Doc = lambda _: empty  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.Doc = ordinary  # type: ignore[attr-defined]


def _import_fastapi() -> bool:
    """Whether FastAPI was imported here and came without the parts it can do without."""
    if "fastapi" in sys.modules or any(name in sys.modules for name in _TELEMETRY):
        return False
    later = {name: module for name, module in _later_modules().items() if name not in sys.modules}
    sys.modules.update(later)
    try:
        with _without_texts():
            importlib.import_module("fastapi")
    except Exception:  # noqa: BLE001 (whatever it is, FastAPI is then imported the ordinary way)
        _forget("fastapi")
        return False
    finally:
        _withdraw(later)
    return True


def _forget(package: str) -> None:
    """The package is imported anew by whoever asks next."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _withdraw(modules: dict[str, ModuleType]) -> None:
    """The library keeps what it bound of these; everybody else gets the real modules."""
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


def _skip_pydantic_1() -> None:
    """FastAPI asks of every model whether it is one of pydantic 1. None can be while pydantic.v1 is not loaded."""

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
    """The last import is done: what exists now is never garbage, and what comes is collected again."""
    gc.freeze()
    gc.enable()


class _NoDocstring(str):
    """Takes what botocore describes a method by, and is empty."""

    __slots__ = ()

    def __new__(cls, *_: Any, **__: Any) -> "_NoDocstring":
        return super().__new__(cls)


class _NoDocumenter:
    """Takes what botocore would change in its documentation; each of its methods is a handler that changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _document_nothing


def _document_nothing(**_: Any) -> None:
    pass


_DOCUMENTATION: dict[str, dict[str, Any]] = {
    "botocore.docs.docstring": dict.fromkeys(
        ("ClientMethodDocstring", "PaginatorDocstring", "WaiterDocstring"), _NoDocstring
    ),
    "botocore.docs.utils": dict.fromkeys(
        ("AppendParamDocumentation", "AutoPopulatedParam", "DocumentModifiedShape", "HideParamFromOperations"),
        _NoDocumenter,
    ),
}


def _import_botocore() -> bool:
    """Whether botocore's session was imported here, and without what writes documentation."""
    if any(name in sys.modules for name in ("botocore.client", "botocore.handlers", *_DOCUMENTATION)):
        return False
    modules = {name: ModuleType(name) for name in _DOCUMENTATION}
    for name, module in modules.items():
        module.__dict__.update(_DOCUMENTATION[name])
    if _METADATA not in sys.modules:
        modules[_METADATA] = _LaterModule(_METADATA)
    sys.modules.update(modules)
    try:
        importlib.import_module("botocore.session")
    except Exception:  # noqa: BLE001 (whatever it is, botocore is then imported the ordinary way)
        _forget("botocore")
        return False
    finally:
        _withdraw(modules)
    _drop_documentation_handlers()
    return True


def _drop_documentation_handlers() -> None:
    """Every session registers botocore's handlers one by one, and a quarter of them only write documentation."""
    handlers = getattr(sys.modules.get("botocore.handlers"), "BUILTIN_HANDLERS", None)
    if isinstance(handlers, list):
        # In place: others may hold the list, to add handlers of their own.
        handlers[:] = [entry for entry in handlers if not str(entry[0]).startswith("docs.")]


os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
SLIM_FASTAPI = _import_fastapi()
SLIM_BOTOCORE = _import_botocore()
_skip_pydantic_1()
