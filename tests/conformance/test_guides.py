"""The code of the guides of /docs in the languages of others: Node.js runs it, and TypeScript's compiler checks it."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.checkout import ROOT, free_port
from notifications.formats import signed_headers
from tests.conformance.test_generated_clients import STRICT, program, run
from tests.support.guides import files_of, write

SECRET, OLD_SECRET = "whsec_" + "Ab3x" * 9, "whsec_" + "Zz9x" * 9
BODY = json.dumps({"type": "scan.completed", "data": {"organization": {"name": "Café"}}}, ensure_ascii=False).encode()
# The types of Nuxt, React, and style sheets that the guide uses.
TYPES = """
interface NuxtApp { hook(name: 'app:mounted', call: () => void): void }
declare function defineNuxtPlugin(plugin: (app: NuxtApp) => void): unknown;
declare function defineNuxtConfig(config: {
  app: { head: { script: { type: string; src: string; async: boolean; [name: `data-${string}`]: string }[] } };
}): unknown;
declare module '*.css';
declare module 'react' {
  export type ReactNode = object | string | number | null | undefined;
  export function useEffect(effect: () => void, dependencies: unknown[]): void;
}
declare module 'react/jsx-runtime' {
  export namespace JSX { interface IntrinsicElements { [name: string]: object } }
  export const jsx: unknown, jsxs: unknown;
}
"""


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The receiver of the guide to webhooks, on a free port."""
    port = free_port()
    code = files_of("webhooks")["receiver.mjs"]
    assert ".listen(8080)" in code
    (tmp_path / "receiver.mjs").write_text(code.replace("8080", f"{port}, '127.0.0.1'"))
    process = subprocess.Popen(
        [program("node"), tmp_path / "receiver.mjs"],
        env=os.environ | {"WEBHOOK_SECRET": SECRET},
        stdout=subprocess.PIPE,
        text=True,
    )
    yield f"http://127.0.0.1:{port}/", process
    process.terminate()
    process.wait(20)
    assert process.stdout
    process.stdout.close()


def status_of(url: str, body: bytes, headers: dict[str, str]) -> int:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except urllib.error.URLError:  # Node.js is starting
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_the_receiver_in_node_accepts_what_the_service_signs_and_nothing_else(receiver):
    url, process = receiver
    now = int(time.time())
    signed = signed_headers("evt_1", now, BODY, [OLD_SECRET, SECRET])
    refused = [
        (BODY + b" ", signed),
        (BODY, signed_headers("evt_1", now, BODY, [OLD_SECRET])),
        (BODY, signed_headers("evt_1", now - 400, BODY, [SECRET])),
        (BODY, signed | {"webhook-id": "evt_2"}),
        (BODY, signed | {"webhook-signature": "v1,"}),
        (BODY, {}),
    ]
    assert [status_of(url, body, headers) for body, headers in refused] == [400] * len(refused)
    assert status_of(url, BODY, signed) == 204
    assert process.stdout.readline() == "scan.completed\n"


def test_the_code_of_the_guide_to_consent_compiles(tmp_path: Path):
    """Nuxt, Next.js, and Astro aren't installed: their own builds aren't run."""
    files = {name: code for name, code in files_of("consent").items() if name.endswith((".ts", ".tsx"))}
    write({**files, "types.d.ts": TYPES}, tmp_path)
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(
        ROOT / "node_modules" / "vanilla-cookieconsent", tmp_path / "node_modules" / "vanilla-cookieconsent"
    )
    options = ("--noEmit", "--jsx", "react-jsx", "--module", "esnext", "--moduleResolution", "bundler")
    run(program("tsc"), *STRICT, *options, *files, "types.d.ts", cwd=tmp_path)
