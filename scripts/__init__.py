"""What the Makefile's targets run."""
