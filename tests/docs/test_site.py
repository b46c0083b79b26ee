"""The documentation site builds strictly, and its pages work in a browser without any other host."""

import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

import classgap as cg
from browser import Browser

ROOT = Path(__file__).parents[2]
BROKEN_NAMES = r"""
[...document.querySelectorAll('td code')].filter(e => /^[\w.]+$/.test(e.innerText) && e.getClientRects().length > 1)
    .map(e => e.innerText)
"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *values: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]  # --quiet hides warnings
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": "", "LANG": "C.UTF-8"})
    assert built.returncode == 0, built.stdout + built.stderr
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_site_is_built_strictly():
    """With ``--quiet``, MkDocs sees no warnings, and ``--strict`` accepts a broken link."""
    texts = [ROOT / "Makefile", *(ROOT / ".github" / "workflows").glob("*.yml")]
    builds = [
        line for path in texts for line in path.read_text().splitlines() if "mkdocs build" in line.partition("#")[0]
    ]
    assert builds
    assert all("--strict" in line and "--quiet" not in line.partition("#")[0] for line in builds)


def test_every_page_opens_fits_a_phone_and_asks_no_other_host(site: tuple[Path, str], page: Browser):
    folder, address = site
    pages = sorted(path.parent.relative_to(folder).as_posix() for path in folder.rglob("index.html"))
    assert len(pages) >= 15
    for name in pages:
        page.open(f"{address}/{name}/")
        assert page.run("document.querySelector('h1').innerText.length") > 1, name
        assert not page.errors(), name
        assert not [url for url in page.requests() if not url.startswith((address, "data:"))], name
        assert page.run("[...document.images].every(each => each.complete && each.naturalWidth > 0)"), name
        page.resize(400, 800)
        assert page.run("document.documentElement.scrollWidth") <= 400, name
        assert page.run(BROKEN_NAMES) == [], name
        page.resize(1200, 900)


def test_commands_are_as_dark_as_code(site: tuple[Path, str], page: Browser):
    page.open(f"{site[1]}/gate/")
    command, code = (page.run(f"getComputedStyle(document.querySelector('{each}')).color") for each in (".go", "code"))
    assert command == code


def test_pages_are_in_the_order_in_which_people_need_them():
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    first = [next(iter(entry)) for entry in navigation]
    assert first[:6] == ["Start", "See it", "Why a class fails", "What to try first", "Fix it", "Prove it and keep it"]
    listed = re.findall(r"[\w/-]+\.md", str(navigation))
    assert len(listed) == len(set(listed))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(listed) == pages | {"contributing.md", "changelog.md", "security.md"}


def test_the_search_finds_a_loss(site: tuple[Path, str], page: Browser):
    page.open(site[1])
    page.run("document.querySelector('.md-search__input').focus()")
    page.type("LargeMarginDiscriminativeLoss")
    page.wait(lambda: page.run("document.querySelectorAll('.md-search-result__item').length"))


def test_the_reference_shows_every_public_name():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    named = {line.split(".")[-1] for line in pages.splitlines() if line.startswith(":::")}
    assert set(cg.losses.__all__) <= named
    packages = {"data", "models", "methods", "losses", "functional", "theory"}
    assert set(cg.__all__) - {"__version__"} <= named | packages
