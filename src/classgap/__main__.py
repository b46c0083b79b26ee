"""``python -m classgap`` is the command line, for torchrun and where the script is not on the path."""

import sys

from classgap.cli import main

if __name__ == "__main__":
    sys.exit(main())
