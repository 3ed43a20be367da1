"""What the functions are compared with. Each module is a Lambda handler that imports nothing of the project."""
