from scripts.sdk import sync


def test_nothing_asynchronous_is_left_in_the_synchronous_client():
    for path, text in sync.texts().items():
        lines = [it for it in text.splitlines() if not it.startswith("# Made from")]
        assert [it for it in lines if "async" in it.lower() or "await" in it] == [], path
