"""``classgap reproduce`` with the methods and the network of forms/, which are not part of the package.

    python experiments/reproduce.py experiments/mr2-forms.yaml --scale cpu --files clinc150=FILE.npz

Worker processes import this file too, so that they know the methods.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]  # forms uses a network of benchmarks/
import forms  # noqa: E402, F401 - adds its methods to the registry

from classgap.cli.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
