"""Organizations: listing, reading and creating them."""
