"""`make mutate`: changes the product in small ways, and lists the changes that no test notices.

    python -m scripts.mutate                      # the lines changed since BASE, or by the last commit
    python -m scripts.mutate --file FILE          # a whole file
    python -m scripts.mutate --file FILE --tests tests/races/test_keys.py    # with these tests only

`mutants` makes the changes, `changes` finds the lines, `coverage` knows which tests run a line, `trials` runs them.
"""
