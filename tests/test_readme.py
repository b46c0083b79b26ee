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


def test_the_losses_of_the_table_exist() -> None:
    import classgap as cg

    named = re.findall(r"^\| `(\w+Loss)` \|", README.read_text(), flags=re.MULTILINE)
    assert len(named) >= 5
    assert all(hasattr(cg.losses, name) for name in named)


def test_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z-]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
