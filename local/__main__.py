"""`make run`: MiniStack, the template's stateful resources, demo data, and every function under one server.

This process starts the others, watches the files and ends the others. It is imported again by the server process, so
what only this process needs is imported where it is needed.
"""

import http.client
import json
import os
import shutil
import signal
import sys
import threading
import time
from typing import Any, NoReturn
from urllib.parse import urlsplit

from local import checkout, environment, terminal
from local.checkout import HOST, ROOT, SOURCES, AlreadyRunning
from local.ministack import MINISTACK_DIRECTORY, DeployFailed, MiniStack, MiniStackFailed
from local.request_log import READINESS_PROBE

DEFAULT_PORT = 3000
_READY_TIMEOUT_SECONDS = 60
_STOP_MESSAGE = "\nStopped. The data stays; `make reset` deletes it."


def main() -> None:
    """Runs until Ctrl-C or SIGTERM. Exits with status 1 and one line where the stack cannot start."""
    sys.path[:0] = [str(ROOT / name) for name in SOURCES]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    terminal.stop_with_make()
    try:
        with checkout.sole_run(), terminal.foreground():
            _run(_read_port())
    except KeyboardInterrupt:  # before the server took over the signals
        print(_STOP_MESSAGE)
    except AlreadyRunning as running:
        _fail(f"{running} Stop it with Ctrl-C there, or with `make reset`, which also deletes its data.")
    except MiniStackFailed as failure:
        _fail(str(failure))
    except DeployFailed as failure:
        _fail(f"The template's resources could not be deployed: {failure}. `make reset` deletes the data.")


def _run(port: int) -> None:
    if not checkout.is_free(port):
        _fail(f"Port {port} is in use. Use another one: PORT={port + 1} make run")
    memory = checkout.load_memory()
    if memory.demo is None:  # a first run, or one after a first run that was interrupted
        shutil.rmtree(MINISTACK_DIRECTORY, ignore_errors=True)
    ministack = MiniStack(memory.ministack_port)
    try:
        credentials = _prepare(memory, ministack, f"http://{HOST}:{port}")
        threading.Thread(target=_print_screen, args=(port, credentials), daemon=True).start()
        _serve(port)
    finally:
        ministack.stop()
    print(_STOP_MESSAGE)


def _prepare(memory: checkout.Memory, ministack: MiniStack, base_url: str) -> dict[str, Any]:
    """Brings stack and demo data up to date, and puts the functions' variables into the environment."""
    from local.stack import LocalStack  # noqa: PLC0415 - loads botocore while MiniStack starts

    stack = LocalStack(ministack.endpoint, base_url)
    _prepare_github()
    ministack.wait_until_ready()
    deployment = stack.deploy(memory.deployed)
    memory.deployed = stack.digest
    variables = environment.function_environment(memory, base_url, ministack.endpoint, deployment.resources)
    environment.apply(variables)
    _prepare_sam(variables, ministack.endpoint, [memory.ministack_port, urlsplit(base_url).port or 80])

    if deployment.is_new or memory.demo is None or "repositories" not in memory.demo:
        memory.demo = _seed(memory.demo, base_url)
    _create_people(ministack.endpoint, deployment.resources["UserPool"], memory.demo)
    memory.code_host = _code_host(base_url)
    memory.save()
    credentials = {"baseUrl": base_url, **memory.demo}
    checkout.write_private(checkout.CREDENTIALS, json.dumps(credentials, indent=2) + "\n")
    return credentials


def _prepare_sam(variables: dict[str, str], endpoint: str, ports: list[int]) -> None:
    from local import sam  # noqa: PLC0415 - loads botocore while MiniStack starts

    sam.write_files(variables)
    sam.start_serving(endpoint, ports)


def _prepare_github() -> None:
    from local.github import setup  # noqa: PLC0415
    from local.github.repositories import GitFailed  # noqa: PLC0415

    try:
        setup.prepare(checkout.DIRECTORY / setup.FOLDER)
    except GitFailed as failure:
        print(f"The demo repository wasn't created: {failure}.", file=sys.stderr)


def _code_host(base_url: str) -> dict[str, str]:
    from local.github import setup  # noqa: PLC0415

    return setup.function_variables(checkout.DIRECTORY / setup.FOLDER, base_url)


def _seed(known: dict[str, Any] | None, base_url: str) -> dict[str, Any]:
    # The shared layer reads the environment when it is imported.
    from controlplane.code_host.items import HostedRepository  # noqa: PLC0415
    from local.demo import ensure_demo  # noqa: PLC0415
    from local.github import setup  # noqa: PLC0415

    owner, name = setup.DEMO_OWNER, setup.DEMO_NAME
    address = f"{base_url}{setup.PREFIX}/{owner}/{name}"
    hosted = HostedRepository(
        installation_id=setup.installation_id(owner),
        owner=owner,
        name=name,
        html_url=address,
        default_branch=setup.DEMO_BRANCH,
        visibility="private",
    )
    return ensure_demo(known, hosted)


def _create_people(endpoint: str, pool_id: str, demo: dict[str, Any]) -> None:
    from local.demo import USERS  # noqa: PLC0415
    from local.people import ensure_people  # noqa: PLC0415 - loads botocore while MiniStack starts

    ensure_people(endpoint, pool_id, demo["users"], {user.email: user.name for user in USERS})


def _serve(port: int) -> None:
    """Serves until SIGINT or SIGTERM, with a new server process after every edit."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.config import LOGGING_CONFIG  # noqa: PLC0415
    from uvicorn.supervisors import ChangeReload  # noqa: PLC0415

    logging = LOGGING_CONFIG | {"loggers": LOGGING_CONFIG["loggers"] | {"uvicorn.error": {"level": "WARNING"}}}
    config = uvicorn.Config(
        "local.server:app",
        host=HOST,
        port=port,
        reload=True,
        reload_dirs=[str(ROOT / name) for name in (*SOURCES, "local")],
        reload_includes=["*.py", "*.json", "*.html", "*.css"],
        log_config=logging,
        access_log=False,  # local.request_log writes one with the request's id
        server_header=False,
        # The address of a caller is the one it called from, as behind API Gateway: no header changes it.
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )
    # The reloader takes over SIGINT and SIGTERM. The end of the terminal must reach it too.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    ChangeReload(config, target=uvicorn.Server(config).run, sockets=[config.bind_socket()]).run()


def _print_screen(port: int, credentials: dict[str, Any]) -> None:
    """Prints the screen as soon as the server answers."""
    from local import screen  # noqa: PLC0415

    deadline = time.monotonic() + _READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection(HOST, port, timeout=10)
            connection.request("GET", "/v1/regions", headers={"User-Agent": READINESS_PROBE})
            answer = json.loads(connection.getresponse().read())
            print(screen.render(credentials, answer["data"][0]["id"]), flush=True)
        except OSError:
            time.sleep(0.05)
        else:
            return


def _read_port() -> int:
    value = os.environ.get("PORT") or str(DEFAULT_PORT)
    if not value.isdecimal() or not 0 < int(value) < 65536:
        _fail(f"PORT must be a number from 1 to 65535, not {value!r}.")
    return int(value)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
