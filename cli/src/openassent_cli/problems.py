"""Errors that end a command: each has an exit code of those in the manual, and says what to do next."""

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


class Problem(Exception):
    """Ends the command with a message on standard error, an advice on how to go on, and an exit code."""

    def __init__(self, message: str, advice: str | None = None, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code


class UnknownName(Problem):
    """No resource of the kind has that ID or name. kind: as in the group of commands, such as `project`."""

    def __init__(self, kind: str, wanted: str) -> None:
        noun = {"org": "organization", "repo": "repository"}.get(kind, kind)
        super().__init__(f"There is no {noun} {wanted}.", f"`assent {kind} list` lists them.", Exit.NOT_FOUND)
        self.kind = kind


class NotSignedIn(Problem):
    def __init__(self, message: str = "You aren't signed in.", profile: str | None = None) -> None:
        advice = f"Run `assent login --profile {profile}`." if profile else "Run `assent login`, or set ASSENT_API_KEY."
        super().__init__(message, advice, Exit.SIGN_IN)
