"""The peers that the functions are compared with, each a Lambda handler that imports nothing of the project."""
