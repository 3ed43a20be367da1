"""Programs that the Makefile's targets run."""
