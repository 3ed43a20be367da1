"""Entry point of `python -m ops`. The script `scripts/assent-ops` runs it from any folder."""

import sys

from ops.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
