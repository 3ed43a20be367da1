"""What every function of the control plane shares. Functions import from here; nothing here imports a function."""
