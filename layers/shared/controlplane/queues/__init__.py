"""Messages between functions, and the workers that process them."""
