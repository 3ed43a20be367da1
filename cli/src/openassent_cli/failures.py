"""How a command that fails ends: with a message that says what to do, and an exit code."""

import contextlib
import os
import sys
from collections.abc import Iterator

import typer

import openassent
from openassent_cli.extras import installation
from openassent_cli.printable import printable
from openassent_cli.problems import Exit, Problem

_CODES = {
    400: Exit.USAGE,
    401: Exit.SIGN_IN,
    402: Exit.REFUSED,
    403: Exit.REFUSED,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    422: Exit.USAGE,
    429: Exit.TRY_LATER,
    503: Exit.TRY_LATER,
}
# Replaces the service's own advice for these codes, which is for programs that send requests.
_ADVICE = {
    "CONFLICT": "Look at the current state, then decide whether to run another command.",
    "INSUFFICIENT_SCOPE": "Sign in with the scope that is needed: `assent login --scope …`. API keys don't have every "
    "scope.",
    "INTERNAL_ERROR": "Try again later, and report the request's ID if it fails again.",
    "INVALID_ORIGIN": "Correct each address, then run the command again.",
    "INVALID_PAYLOAD": "Correct each problem, then run the command again.",
    "INVALID_REGION": "`assent api GET /v1/regions` lists the regions.",
    "NOT_FOUND": "Check the ID, and with `assent whoami` the organization.",
    "SCAN_IN_PROGRESS": "Wait until the scan has ended, then run the command again.",
}


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Turns the errors of a command into typer.Exit, and prints what to do on standard error."""
    try:
        yield
    except openassent.AssentError as error:
        raise typer.Exit(_report(problem_of(error))) from None
    except Problem as problem:
        raise typer.Exit(_report(problem)) from None
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has seen enough. Python would complain when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Exit.DONE) from None
    except ModuleNotFoundError as error:
        advice = installation(error)
        if advice is None:
            raise
        missing = Problem("This command isn't installed.", advice, Exit.USAGE)
        raise typer.Exit(_report(missing)) from None
    except _keyring_error():
        missing = Problem("The system's keyring doesn't work.", "Set ASSENT_KEYRING=off to keep tokens in a file.")
        raise typer.Exit(_report(missing)) from None
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise typer.Exit(_report(Problem(f"{place}{error.strerror or error}"))) from None


def _keyring_error() -> type[Exception]:
    from keyring.errors import KeyringError  # noqa: PLC0415 (takes long to import, and few commands need it)

    return KeyringError


def problem_of(error: "openassent.AssentError") -> Problem:
    """Converts an error of the service or the connection to the problem that the person sees."""
    if isinstance(error, openassent.ConnectionFailed):
        advice = "Check the address (`assent profile list`) and your connection."
        return Problem(str(error), advice, Exit.NO_CONNECTION)
    if isinstance(error, openassent.InvalidArgument):
        return Problem(str(error), code=Exit.USAGE)
    if not isinstance(error, openassent.ApiError):
        return Problem(str(error))
    return Problem(error.message, "\n".join(_advice(error)) or None, _CODES.get(error.status, Exit.FAILED))


def _advice(error: "openassent.ApiError") -> Iterator[str]:
    for problem in error.problems[1:]:  # the message has the first one
        yield f"{'.'.join(problem.path)}: {problem.message}" if problem.path else problem.message
    if error.status == 401:
        yield "Run `assent login`, or set ASSENT_API_KEY to a valid key."
    elif [problem.path for problem in error.problems] == [["organizationId"]]:
        yield "Give --org, or run `assent org use`."
    elif error.retry_after:
        yield f"Try again in {error.retry_after:.0f} seconds."
    elif hint := _ADVICE.get(error.code or "", error.hint):
        yield hint
    suggestions = error.details.get("suggestions") if isinstance(error.details, dict) else None
    if suggestions and isinstance(suggestions, list):
        yield f"Suggestions: {', '.join(map(str, suggestions))}"
    if error.docs_url:
        yield f"See {error.docs_url}"
    if error.request_id:
        yield f"Request {error.request_id}"


def _report(problem: Problem) -> int:
    colors = False if os.environ.get("NO_COLOR") else None
    label = typer.style("Error:", fg="red", bold=True)
    typer.echo(f"{label} {printable(problem.message)}", err=True, color=colors)
    if problem.advice:
        typer.echo(printable(problem.advice), err=True)
    return int(problem.code)
