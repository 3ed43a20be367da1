"""Messages between functions, the workers that process them, and the work that the sweep resumes. Imports `table`."""
