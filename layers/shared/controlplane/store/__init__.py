"""The single table: its client, its codec, every key and every item. Knows nothing of HTTP."""
