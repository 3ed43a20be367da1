"""Parses form-encoded bodies and queries into pairs of name and value."""

from urllib.parse import parse_qsl

# Decoding percent escapes takes some thirty times as long as parsing JSON of the same length. Every field that an
# operation accepts is shorter than 5 KB.
MAX_FORM_BYTES = 65_536


def parse_pairs(text: bytes, max_fields: int) -> list[tuple[str, str]]:
    """Returns the pairs in order, empty values included.

    Raises ValueError for text that is longer than MAX_FORM_BYTES, is not percent-encoded UTF-8, or has more fields.
    """
    if len(text) > MAX_FORM_BYTES:
        raise ValueError("the form is too long")
    return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=max_fields)
