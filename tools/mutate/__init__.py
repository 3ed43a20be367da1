"""`make mutate`: changes the product in small ways, and lists the changes that no test notices.

Ours, because the maintained tools (mutmut, cosmic-ray) change Python alone: the conditions of DynamoDB's writes and the
legs of its transactions, which keep our data right, are text and dictionaries to them. `mutants` makes the changes,
`__main__` runs the tests.
"""
