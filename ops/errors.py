"""How a command can fail, and the exit code that says so. A message is for the operator and says what to do next."""


class Refused(Exception):
    """Nothing was changed, or the table could not be asked."""

    exit_code = 1
    code = "REFUSED"


class Misused(Refused):
    """The command line is not one that can be carried out."""

    exit_code = 2
    code = "USAGE"


class NotFound(Refused):
    """What was named does not exist."""

    exit_code = 3
    code = "NOT_FOUND"


class Conflict(Refused):
    """What was asked for collides with what is there."""

    exit_code = 4
    code = "CONFLICT"
