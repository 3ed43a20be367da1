"""The commands: one module, with its own Typer app, per noun."""
