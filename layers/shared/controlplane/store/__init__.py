"""The single DynamoDB table: its client, codec, keys, and items. Independent of HTTP."""
