"""The inbox: findings, their status, and the GitHub issues opened for them."""
