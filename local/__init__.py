"""The whole stack on one machine: `make run`. Nothing here is deployed."""
