"""Entry point of `python -m ops`. The script `scripts/assent-ops` runs it from any folder."""

from ops.cli import app

if __name__ == "__main__":
    app(prog_name="assent-ops")
