"""Tests lazy imports in fresh interpreters, because imports in this one can't be undone."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]

APP = """
import asyncio, json
from typing import Annotated
from fastapi import APIRouter, FastAPI, Path
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import BaseModel

class Thing(BaseModel):
    name: str
    size: int = 1

def build(**options):
    app = FastAPI(**options)

    @app.post("/things/{kind}")
    async def create(kind: Annotated[str, Path(examples=["a"])], thing: Thing) -> Thing:
        return thing

    return app

def ask(app):
    sent = []
    body = b'{"name": "x", "size": "2"}'
    scope = {"type": "http", "method": "POST", "path": "/things/a", "raw_path": b"/things/a", "query_string": b"",
             "headers": [(b"content-type", b"application/json")], "root_path": "", "scheme": "http",
             "server": ("localhost", 80), "client": None, "http_version": "1.1"}
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}
    async def send(message):
        sent.append(message)
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()
"""

# A FastAPI that can't be imported while its OpenAPI models are a placeholder.
CHANGED_FASTAPI = """
import importlib.abc

class Changed(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        models = sys.modules.get("fastapi.openapi.models")
        if name == "fastapi.params" and models is not None and not getattr(models, "__file__", None):
            raise RuntimeError("needs a model while it is imported")

sys.meta_path.insert(0, Changed())
from controlplane.platform.core import lazy_imports
"""

SCHEMES = """
out["schemes"] = [HTTPBearer(bearerFormat="JWT").model.model_dump(mode="json", exclude_none=True),
                  APIKeyHeader(name="x-key").model.model_dump(mode="json", by_alias=True, exclude_none=True)]
"""


LAZY = "from controlplane.platform.core import lazy_imports\n"


def run(code: str) -> dict:
    """Returns the value of `out` after a new interpreter has run the code."""
    script = "import sys\nout = {}\n" + dedent(code) + "\nimport json\nprint(json.dumps(out))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "layers/shared"), "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fastapi_serves_a_request_without_unneeded_modules():
    served = "out['answer'], out['modules'] = ask(build(%s)), [*sys.modules]\n"
    out = run(LAZY + APP + served % "telemetry=lazy_imports.TELEMETRY_OFF" + "out['slim'] = lazy_imports.SLIM_FASTAPI")
    assert out["slim"], "FastAPI has changed: the placeholders no longer fit it"
    assert out["answer"] == [200, '{"name":"x","size":2}']
    heavy = {"fastapi.openapi.models", "email_validator", "importlib.metadata"}
    assert not [
        name
        for name in out["modules"]
        if name in heavy or name.startswith("pydantic.v1") or name.partition(".")[0] == "opentelemetry"
    ]
    traced = run(LAZY + APP + served % "")
    assert (traced["answer"], "opentelemetry.trace" in traced["modules"]) == (out["answer"], True)


def test_importing_searches_no_plugins_and_collects_no_garbage_until_it_is_finished():
    out = run("""
        import gc, importlib.metadata
        searched = []
        importlib.metadata.entry_points = lambda **given: searched.append(given) or ()
        from controlplane.platform.core import lazy_imports
        from pydantic import create_model
        create_model("Thing", name=(str, ...))
        out["searched"], out["during"] = searched, gc.isenabled()
        lazy_imports.finish()
        out["after"], out["frozen"] = gc.isenabled(), gc.get_freeze_count() > 1000
    """)
    assert out == {"searched": [], "during": False, "after": True, "frozen": True}


def test_other_importers_get_no_placeholder_and_an_imported_fastapi_stays():
    out = run("""
        from controlplane.platform.core import lazy_imports
        import fastapi.openapi.models, opentelemetry.trace, importlib.metadata, annotated_doc
        out["models"] = issubclass(fastapi.openapi.models.Schema, fastapi.openapi.models.BaseModel)
        out["files"] = all(module.__file__ for module in (opentelemetry.trace, importlib.metadata))
        out["text"] = annotated_doc.Doc("text").documentation
    """)
    assert out == {"models": True, "files": True, "text": "text"}
    assert run("import fastapi\n" + LAZY + "out['slim'] = lazy_imports.SLIM_FASTAPI") == {"slim": False}


def test_an_incompatible_fastapi_is_imported_as_usual():
    out = run(CHANGED_FASTAPI + APP + "out['answer'], out['slim'] = ask(build()), lazy_imports.SLIM_FASTAPI\n")
    assert out == {"answer": [200, '{"name":"x","size":2}'], "slim": False}


def test_documents_schemes_and_models_are_the_same_as_without_it():
    described = (
        APP
        + SCHEMES
        + dedent("""
            from typing import TypedDict
            from pydantic import Field

            class Part(TypedDict):
                name: str

            class Whole(BaseModel):
                size: Annotated[int, Field(gt=0)]
                parts: list[Part] = []

            try:
                Whole(size=0, parts=[{}])
            except ValueError as error:
                out["problems"] = error.errors(include_url=False)
            out["schema"], out["document"] = Whole.model_json_schema(), build(title="t", version="1").openapi()
        """)
    )
    assert run(LAZY + described) == run(described)


class TestDataclasses:
    """The build's file with the methods of dataclasses."""

    PROGRAM = """
        import builtins, dataclasses, pathlib
        from controlplane.platform.core import dataclass_code
        sources, compiled = set(), []

        def record(source, *namespaces):
            sources.add(source)
            builtins.exec(source, *namespaces)

        def define():
            @dataclasses.dataclass(frozen=True, slots=True)
            class Point:
                x: int
                y: int = 0

            return Point

        dataclasses.exec = record
        define()
        del dataclasses.exec
        file = pathlib.Path(FOLDER) / "code.bin"
        file.write_bytes(dataclass_code.dump(sources))
    """

    def test_a_dataclass_takes_its_methods_from_the_file(self, tmp_path):
        out = run(f"FOLDER = {str(tmp_path)!r}\n{dedent(self.PROGRAM)}" + dedent("""
            ordinary = builtins.exec
            builtins.exec = lambda code, *given: compiled.append(type(code).__name__) or ordinary(code, *given)
            dataclass_code.install(file)
            Point = define()
            point = Point(1)
            out["point"] = [repr(point), point == Point(1, 0), hash(point) == hash(Point(1))]
            try:
                point.x = 2
            except dataclasses.FrozenInstanceError:
                out["frozen"] = True
            dataclasses.make_dataclass("Other", ["name"])
            out["compiled"] = compiled
        """))  # fmt: skip
        assert out["point"] == ["define.<locals>.Point(x=1, y=0)", True, True]
        assert out["frozen"]
        assert set(out["compiled"]) == {"code", "str"}  # the class that the file doesn't have is compiled
        assert out["compiled"][0] == "code"

    def test_the_file_of_another_python_is_ignored(self, tmp_path):
        out = run(f"FOLDER = {str(tmp_path)!r}\n{dedent(self.PROGRAM)}" + dedent("""
            file.write_bytes(b"\\0\\0" + file.read_bytes()[2:])
            dataclass_code.install(file)
            out["installed"] = "exec" in vars(dataclasses)
        """))  # fmt: skip
        assert out == {"installed": False}
