"""Reads which media types a client accepts (RFC 9110, section 12.5.1)."""


def quality_of(media_type: str, accept: str) -> float:
    """Returns the quality that the header gives the type: 0 if it doesn't name it. Ranges such as `*/*` don't count."""
    found = 0.0
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name == media_type:
            found = _quality(parameters)
    return found


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
