"""A client of DynamoDB and SQS. README.md says what it refuses, what it was compared with, and how to switch it off.

It is a package of its own and imports nothing of the control plane.
"""
