"""Every Python block of the README runs, in order, in one session."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def _blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_python_blocks_run() -> None:
    blocks = _blocks()
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)


def test_gains_of_fix_are_those_of_the_measurements() -> None:
    remedies = (README.parent / "docs" / "remedies.md").read_text()
    gains = [
        float(gain) for gain in re.findall(r"^\| \*\*classgap fix\*\* \| \+([\d.]+)", remedies, flags=re.MULTILINE)
    ]
    small, large = ([gain for gain in gains if (gain > 10) == tail] for tail in (False, True))
    assert len(small) >= 8
    claim = f"gains {min(small)} to {max(small)} on balanced problems and {round(min(large))} on long-tailed ones"
    assert claim in " ".join(README.read_text().split())


def test_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z-]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
