"""A module per noun, each a Typer app of its own."""
