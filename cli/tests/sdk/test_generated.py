import re

from scripts.sdk import models, operations


def test_nothing_asynchronous_is_left_in_the_synchronous_client():
    for path, text in models.synchronous_texts().items():
        lines = [it for it in text.splitlines() if not it.startswith("# Made from")]
        assert [it for it in lines if "async" in it.lower() or "await" in it] == [], path


def test_docstrings_have_the_words_of_the_sdk():
    assert re.findall(r"(?:GET|POST|PUT|PATCH|DELETE) /\S+|\bnull\b|hasMore|older .*shape", operations.text()) == []
