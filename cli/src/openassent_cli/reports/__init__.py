"""The findings of a local scan in each format: text for people, JSON, SARIF, and GitHub's annotations."""

from enum import StrEnum


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
