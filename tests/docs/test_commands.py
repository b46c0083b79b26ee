"""Commands of the documentation that take too long to run have flags and values that exist."""

import re
import shlex
from pathlib import Path

import pytest
from doc_pages import DOCS, read_page

from classgap.cli.main import COMMANDS
from classgap.cli.parser import parse
from classgap.methods import METHODS
from classgap.registry import Spec
from classgap.reproduce.catalog import recipe_names

PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """Return the words of commands outside of ``console`` blocks, which run; without "classgap" and comments."""
    found = []
    for language, block in FENCED.findall(page.read_text(encoding="utf-8")):
        if language in ("", "bash"):
            lines = block.replace("\\\n", " ").splitlines()
            found += [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("classgap ")]
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_can_be_parsed(page: Path):
    for name, *words in commands(page):
        parse(name, COMMANDS[name], words)  # raises ValueError for an unknown flag or value


def test_methods_and_recipes_of_the_commands_exist():
    found = [words for page in PAGES for words in commands(page)]
    methods = {words[words.index("--method") + 1] for words in found if "--method" in words}
    names = {Spec.parse(part).name for method in methods for part in method.split("+")}
    assert set(METHODS.names()) == names
    recipes = {words[1] for words in found if words[0] == "reproduce"}
    assert len(recipes) >= 30
    assert recipes <= set(recipe_names())


def test_every_language_of_a_code_block_is_known():
    """The tests of each page run "python" and "console" blocks; "text" is output; "bash" and no language: see above."""
    languages = {language for page in PAGES for language, _ in FENCED.findall(page.read_text(encoding="utf-8"))}
    assert languages <= {"python", "console", "text", "yaml", "bash", ""}


def test_losses_of_the_page_on_mr2_can_be_built():
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", read_page("mr2.md"), flags=re.DOTALL):
        exec(block, namespace)
    assert namespace["loss"].num_classes == 100
