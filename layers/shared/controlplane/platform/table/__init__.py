"""The single DynamoDB table: its client, transactions, keys, leases, and counters. Imports `core`."""
