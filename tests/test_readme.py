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


def test_losses_that_a_comment_offers_are_called_as_it_says() -> None:
    block = next(each for each in _blocks() if "FeatureTap" in each)
    offered = re.findall(r"\b(?:ELM|LargeMarginDiscriminative)Loss\([^)]*\)", block)
    assert len(offered) == 2
    for call in offered:
        namespace: dict = {}
        exec("import classgap as cg\nimport torch\n" + block, namespace)
        loss = eval(f"cg.losses.{call}", namespace)
        value = loss(
            namespace["logits"], namespace["y"], features=namespace["tap"].features, head=namespace["tap"].head
        )
        assert value.isfinite()


def test_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z-]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
