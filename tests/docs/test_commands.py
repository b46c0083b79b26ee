"""Commands of the documentation that take too long to run have flags and values that exist."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from torch.distributed.run import parse_args

from classgap.cli.main import COMMANDS
from classgap.cli.parser import parse
from classgap.methods import METHODS
from classgap.registry import Spec
from classgap.reproduce.catalog import recipe_names
from doc_pages import DOCS, read_page

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
TEXTS = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    *(path for name in ("src", "examples") for path in (ROOT / name).rglob("*.py")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^ {4,}((?:classgap|torchrun|pip|python) .*)$", flags=re.MULTILINE)


def lines(page: Path) -> list[list[str]]:
    """Return the words of the lines of blocks that do not run: all but ``console`` and ``python``, without comments."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for language, block in FENCED.findall(text) if language in ("", "bash")]
    blocks += INDENTED.findall(FENCED.sub("", text))
    return [shlex.split(line, comments=True) for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def launched(words: list[str]) -> list[str]:
    """Return the command that ``torchrun`` starts in each process, as its own parser understands the line."""
    options = parse_args(words[1:])
    return [
        *(["python", "-m"] if options.module else ["python"]),
        options.training_script,
        *options.training_script_args,
    ]


def commands(page: Path) -> list[list[str]]:
    """Return the words of each ``classgap`` command, alone or under ``torchrun``, without "classgap"."""
    found = [launched(words) if words[0] == "torchrun" else words for words in lines(page) if words]
    return [words[words.index("classgap") + 1 :] for words in found if "classgap" in words[:3]]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_can_be_parsed(page: Path):
    for name, *words in commands(page):
        parse(name, COMMANDS[name], words)  # raises ValueError for an unknown flag or value


def test_every_line_is_a_command_that_is_checked():
    programs = {words[0] for page in PAGES for words in lines(page) if words}
    assert programs == {"classgap", "torchrun", "pip", "make", "python", "git"}
    clones = [words for page in PAGES for words in lines(page) if words and words[0] == "git"]
    assert all(words[1] == "clone" and words[2].startswith("https://github.com/") for words in clones)


def test_commands_under_torchrun_can_be_parsed():
    """Those of pages, docstrings and examples; one of them runs in ``tests/engine/test_resume.py``."""
    shown = [found for path in TEXTS for found in re.findall(r"torchrun --[^`\n]*", path.read_text(encoding="utf-8"))]
    assert len(shown) >= 4
    for line in shown:
        _, *words = launched(shlex.split(line))
        if words[0] == "-m":
            assert words[1] == "classgap"
            if "…" not in words:
                parse(words[2], COMMANDS[words[2]], words[3:])
            assert words[2] in COMMANDS
        else:
            assert (ROOT / words[0]).is_file(), line


def test_a_command_that_torchrun_would_take_apart_is_rejected():
    with pytest.raises(SystemExit):
        parse_args(["--nproc-per-nodes", "2", "-m", "classgap", "train"])
    assert launched(shlex.split("torchrun -m -- classgap train --monitor hard"))[2:] == [
        "classgap",
        "train",
        "--monitor",
        "hard",
    ]


def test_extras_exist():
    """Those that pages and error messages tell to install, and those of the table of trainers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
    shown = set(re.findall(r"classgap\[([a-z]+)\]", texts))
    rows = re.findall(r"^\| \[.*?\| (.*?) \|", read_page("trainers/index.md"), flags=re.MULTILINE)
    shown |= {extra for row in rows for extra in re.findall(r"`(\w+)`", row)}
    assert shown <= set(project["optional-dependencies"])
    assert {*project["optional-dependencies"]} - shown == {"dev"}


def test_pip_installs_this_project_or_an_extra():
    for page in PAGES:
        for program, *words in filter(None, lines(page)):
            if program == "pip":
                assert words[0] == "install"
                assert words[1] == "." or re.fullmatch(r"classgap\[\w+\]", words[1]), words


def test_scripts_exist_and_know_their_flags():
    for page in PAGES:
        for words in lines(page):
            for part in " ".join(words).split(" && ") if words and words[0] == "python" else ():
                program, script, *rest = part.split()
                if script == "experiments/reproduce.py":  # classgap reproduce with more methods
                    parse("reproduce", COMMANDS["reproduce"], rest)
                elif program == "python":
                    source = (ROOT / script).read_text(encoding="utf-8")
                    assert [word for word in rest if word.startswith("--") and f'"{word}"' not in source] == [], part


def test_methods_and_recipes_of_the_commands_exist():
    found = [words for page in PAGES for words in commands(page)]
    methods = {words[words.index("--method") + 1] for words in found if "--method" in words}
    names = {Spec.parse(part).name for method in methods for part in method.split("+")}
    assert set(METHODS.names()) == names
    recipes = {words[1] for words in found if words[0] == "reproduce"}
    assert len(recipes) >= 30
    files = {name for name in recipes if name.endswith(".yaml")}
    assert recipes - files <= set(recipe_names())
    assert all((ROOT / name).is_file() for name in files)


def test_every_language_of_a_code_block_is_known():
    """The tests of each page run "python" and "console" blocks; "text" is output; "bash" and no language: see above."""
    languages = {language for page in PAGES for language, _ in FENCED.findall(page.read_text(encoding="utf-8"))}
    assert languages <= {"python", "console", "text", "yaml", "bash", ""}


def test_losses_of_the_page_on_mr2_can_be_built():
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", read_page("mr2.md"), flags=re.DOTALL):
        exec(block, namespace)
    assert namespace["loss"].num_classes == 100
