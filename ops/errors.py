"""The errors of commands, with their exit codes. Each message tells the operator what to do next."""


class Refused(Exception):
    """Nothing was changed, or the table was unavailable."""

    exit_code = 1
    code = "REFUSED"


class Misused(Refused):
    """The command line is invalid."""

    exit_code = 2
    code = "USAGE"


class NotFound(Refused):
    """The named resource doesn't exist."""

    exit_code = 3
    code = "NOT_FOUND"


class Conflict(Refused):
    """The request conflicts with the current state."""

    exit_code = 4
    code = "CONFLICT"
