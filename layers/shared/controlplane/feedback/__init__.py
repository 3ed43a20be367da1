"""Reports that people send to the operator. Imports no other subject."""
