"""The extras of the distribution, without which a part of the command line can't run."""

# The packages of each extra in cli/pyproject.toml, as they are imported.
EXTRAS = {
    "filelock": "cli",
    "keyring": "cli",
    "platformdirs": "cli",
    "rich": "cli",
    "typer": "cli",
    "ast_grep_py": "scan",
    "yaml": "scan",
    "playwright": "audit",
    "publicsuffixlist": "audit",
    "mcp": "mcp",
    "mcp_types": "mcp",
}


def installation(error: ModuleNotFoundError) -> str | None:
    """Returns how to install the missing module, or None if no extra has it.

    Names a file, never only the distribution: an index could have a stranger's under that name.
    """
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        return None
    from openassent import __version__  # noqa: PLC0415 (takes long to find, and only a few messages need it)

    wheel = f"./openassent-{__version__}-py3-none-any.whl[{extra}]"
    return f"Install your wheel with the extra `{extra}`, such as: pipx install --force '{wheel}'"
