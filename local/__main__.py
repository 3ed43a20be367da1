"""`make run`: MiniStack, the template's stateful resources, demo data, and every function under one server.

This process starts the others, watches the files and ends the others. It is imported again by the server process, so
what only this process needs is imported where it is needed.
"""

import json
import os
import shutil
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from local import checkout, environment
from local.checkout import HOST, ROOT, SOURCES, AlreadyRunning
from local.ministack import MINISTACK_DIRECTORY, DeployFailed, MiniStack, MiniStackFailed

DEFAULT_PORT = 3000
_STOP_MESSAGE = "\nStopped. The data stays; `make reset` deletes it."


def main() -> None:
    """Runs until Ctrl-C or SIGTERM. Exits with status 1 and one line if the stack cannot start."""
    sys.path[:0] = [str(ROOT / name) for name in SOURCES]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if "MAKELEVEL" in os.environ:
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        with checkout.sole_run():
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
    from local import sam  # noqa: PLC0415

    if not checkout.is_free(port):
        _fail(f"Port {port} is in use. Use another one: PORT={port + 1} make run")
    memory = checkout.load_memory()
    if memory.demo is None:  # a first run, or one after a first run that was interrupted
        shutil.rmtree(MINISTACK_DIRECTORY, ignore_errors=True)
    hosts = {HOST, sam.bridge_address()}
    ministack = MiniStack(memory.ministack_port, sam.bridge_address())
    try:
        credentials = _prepare(memory, ministack, f"http://{HOST}:{port}")
        threading.Thread(target=_print_screen, args=(port, credentials), daemon=True).start()
        _serve(port, hosts)
    finally:
        ministack.stop()
    print(_STOP_MESSAGE)


def _prepare(memory: checkout.Memory, ministack: MiniStack, base_url: str) -> dict[str, Any]:
    """Brings stack and demo data up to date, and puts the functions' variables into the environment."""
    # These load botocore while MiniStack starts.
    from local import sam  # noqa: PLC0415
    from local.github import setup  # noqa: PLC0415
    from local.github.repositories import GitFailed  # noqa: PLC0415
    from local.stack import LocalStack, ensure_people  # noqa: PLC0415

    stack, github = LocalStack(ministack.endpoint, base_url), checkout.DIRECTORY / setup.FOLDER
    try:
        setup.prepare(github)
    except GitFailed as failure:
        print(f"The demo repository wasn't created: {failure}.", file=sys.stderr)
    ministack.wait_until_ready()
    deployment = stack.deploy(memory.deployed)
    memory.deployed, memory.code_host = stack.digest, setup.function_variables(github, base_url)
    memory.started = time.time()
    variables = environment.function_environment(
        memory, base_url, ministack.endpoint, deployment.resources, deployment.signing_secret
    )
    environment.apply(variables)
    sam.write_files(variables)
    if sam.is_on():
        sam.store_app_key(ministack.endpoint)
    if deployment.is_new or memory.demo is None:
        memory.demo = None
        memory.save()
        # The shared layer reads the environment when it is imported.
        from local.demo import create_demo  # noqa: PLC0415

        memory.demo = create_demo(base_url)
    ensure_people(ministack.endpoint, deployment.resources["UserPool"], memory.demo["users"])
    memory.save()
    credentials = {"baseUrl": base_url, **memory.demo}
    checkout.write_private(checkout.CREDENTIALS, json.dumps(credentials, indent=2) + "\n")
    return credentials


def _serve(port: int, hosts: set[str]) -> None:
    """Serves until SIGINT or SIGTERM, with a new server process after every edit."""
    import uvicorn  # noqa: PLC0415
    from uvicorn.config import LOGGING_CONFIG  # noqa: PLC0415
    from uvicorn.supervisors import ChangeReload  # noqa: PLC0415

    config = uvicorn.Config(
        "local.server:app",
        port=port,
        reload=True,
        reload_dirs=[str(ROOT / name) for name in (*SOURCES, "local")],
        reload_includes=["*.py", "*.json", "*.html", "*.css"],
        log_config=LOGGING_CONFIG | {"loggers": LOGGING_CONFIG["loggers"] | {"uvicorn.error": {"level": "WARNING"}}},
        access_log=False,  # local.server writes one with the request's id
        server_header=False,
        # The address of a caller is the one it called from, as behind API Gateway: no header changes it.
        proxy_headers=False,
        timeout_graceful_shutdown=3,
    )
    # The reloader takes over SIGINT and SIGTERM. The end of the terminal must reach it too.
    signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    sockets = []
    for config.host in hosts:
        sockets.append(config.bind_socket())
    ChangeReload(config, target=uvicorn.Server(config).run, sockets=sockets).run()


def _print_screen(port: int, credentials: dict[str, Any]) -> None:
    """Prints the screen as soon as the server answers."""
    while not checkout.is_listening(port):
        pass
    print(_render(credentials), flush=True)


def _render(credentials: dict[str, Any]) -> str:
    """Renders the screen, with commands to paste, for the contents of credentials.json."""
    from jinja2 import Template  # noqa: PLC0415

    from controlplane.platform.core.settings import settings  # noqa: PLC0415

    key, users = credentials["apiKeys"][0], credentials["users"]
    organization = next(it for it in credentials["organizations"] if it["organizationId"] == key["organizationId"])
    owner = next(it for it in users if (it["organizationId"], it["role"]) == (key["organizationId"], "owner"))
    text: str = Template((ROOT / "local/templates/screen.txt").read_text()).render(
        users=users,
        width=max(len(it["email"]) for it in users),
        base_url=credentials["baseUrl"],
        slug=organization["slug"],
        key=key["key"],
        token=owner["accessToken"],
        region=settings.regions[0].id,
        repository=credentials["repositories"][0]["repositoryId"],
        credentials=checkout.CREDENTIALS.relative_to(ROOT, walk_up=True),
    )
    return f"\n{text}"


def _read_port() -> int:
    value = os.environ.get("PORT") or str(DEFAULT_PORT)
    if not value.isdecimal() or not 0 < int(value) < 65536:
        _fail(f"PORT must be a number from 1 to 65535, not {value!r}.")
    return int(value)


def _end_with_parent(parent: int) -> None:
    """Ends this process when make is gone, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
