"""`python -m quintet`: the same as the command `quintet`, where that is not on the path."""

from __future__ import annotations

import sys

from quintet.cli import main

if __name__ == "__main__":
    sys.exit(main())
