"""Code shared by all functions of the control plane. Functions import from here; nothing here imports a function."""
