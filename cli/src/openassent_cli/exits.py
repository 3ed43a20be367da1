"""The exit codes of the command line, as the manual and the README list them."""

from enum import IntEnum


class Exit(IntEnum):
    """Each code with its reason as docstring, which the manual shows."""

    def __new__(cls, code: int, reason: str) -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.reason = reason
        return member

    reason: str

    DONE = 0, "The command did what it says."
    FAILED = 1, "The command failed for a reason that has no code of its own."
    USAGE = 2, "An option or argument is wrong."
    FINDINGS = 3, "A gate found findings at or above its threshold."
    SIGN_IN = 4, "No credential, or one that has expired or was revoked."
    REFUSED = 5, "The credential, role, or plan doesn't allow this."
    NOT_FOUND = 6, "The resource doesn't exist, or isn't visible to you."
    CONFLICT = 7, "The resource has changed, or its state doesn't allow this."
    TRY_LATER = 8, "A rate limit or an unavailable service, after several attempts."
    NO_CONNECTION = 9, "The service couldn't be reached."
    INTERRUPTED = 130, "You pressed Ctrl-C."
