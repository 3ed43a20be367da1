"""Errors that end a command: each has an exit code, and says what to do next."""

from openassent_cli.exits import Exit


class Problem(Exception):
    """Ends the command with a message on standard error, an advice on how to go on, and an exit code."""

    def __init__(self, message: str, advice: str | None = None, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code


class NotSignedIn(Problem):
    def __init__(self, message: str = "You aren't signed in.") -> None:
        super().__init__(message, "Run `assent login`, or set ASSENT_API_KEY.", Exit.SIGN_IN)
