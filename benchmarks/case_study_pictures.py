"""Take the pictures of README and documentation: parts of the reports that the commands of the pages write.

    python benchmarks/case_study_pictures.py            # ``make pictures``: takes those whose reports have changed
    python benchmarks/case_study_pictures.py --all      # takes all of them, for example after a change of the style

Each picture is a report with some of its sections hidden, as the browser shows it, in 256 colors. The texts in the
pictures are stored in results/pictures.json with a checksum of each picture, and tests/docs/test_pictures.py compares
them with the reports of today. ``--data`` is the folder of the case studies' data; without it, their pictures stay.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import html
import io
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import stored
from case_studies import DATA
from PIL import Image

from classgap.cli import main as classgap

DOCS = stored.ROOT / "docs"
RESULTS = stored.RESULTS / "pictures.json"
SHARED = stored.ROOT.parent / "shared" / "data"
WIDTH, HEIGHT, BORDER = 1100, 3000, 24
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Picture:
    """Part of a report.

    Attributes:
        page: Page below docs/ whose blocks write the report.
        report: The report.
        hidden: Selector of the parts of the report that the picture leaves out.
        study: Case study whose data the blocks need.
        python: Whether the report needs the Python blocks above it.
    """

    page: str
    report: str
    hidden: str
    study: str = ""
    python: bool = True


PICTURES = {
    "report.png": Picture("index.md", "report.html", ".notices, nav, section:not(#classes), #classes > p, footer"),
    "imagenet.png": Picture(
        "case-studies/imagenet.md",
        "dino.html",
        "header ul, .notices, nav, section:not(#classes), #classes > p, footer, tbody tr:nth-child(n+6)",
        "imagenet",
        python=False,
    ),
    "case-studies/imagenet-compare.png": Picture(
        "case-studies/imagenet.md", "diff.html", "nav, section:not(#slopes), footer", "imagenet", python=False
    ),
    "case-studies/clinc150-fix.png": Picture(
        "case-studies/clinc150.md",
        "fix.html",
        "header, section:not(#remedies):not(#proof), table, footer, #remedies > p:first-of-type",
        "clinc150",
    ),
}


def find_data(picture: Picture, data: Path) -> dict[str, Path] | None:
    """Return the files that a picture needs by name; ``None`` if one is missing."""
    found = {name: next(data.rglob(name), None) for name in DATA.get(picture.study, ())}
    return None if None in found.values() else {name: path for name, path in found.items() if path is not None}


def write_report(picture: Picture, folder: Path, files: dict[str, Path]) -> Path:
    """Run the blocks of the page that the report needs, in ``folder``."""
    for name, path in files.items():
        (folder / name).symlink_to(path.resolve())
    names: dict[str, Any] = {}
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for kind, block in BLOCK.findall((DOCS / picture.page).read_text(encoding="utf-8")):
            if kind == "python" and picture.python:
                exec(compile(block, picture.page, "exec"), names)
            for command in block.splitlines() if kind == "console" else ():
                if f"--html {picture.report}" in command:
                    if classgap(shlex.split(command)[1:]) != 0:
                        raise RuntimeError(f"{command} failed")
                    return folder / picture.report
    raise ValueError(f"{picture.page} has no command with --html {picture.report}")


def take(report: Path, hidden: str, browser: str) -> tuple[Image.Image, str]:
    """Return a picture of a report without the elements that the selector ``hidden`` matches, and the text in it."""
    style = f"<style>{hidden} {{ display: none !important }} .scroll {{ max-height: none !important }}</style>"
    page = re.sub(r"<meta http-equiv=.Content-Security-Policy.[^>]*>", "", report.read_text(encoding="utf-8"))
    page = re.sub(r" · <time[^>]*>[^<]*</time>", "", page)  # a picture of tomorrow is the same
    page = page.replace("</head>", f"{style}</head>")
    script = "<script>document.body.textContent = document.body.innerText</script>"
    with tempfile.TemporaryDirectory() as folder:
        shown, read, picture = (Path(folder, name) for name in ("page.html", "text.html", "page.png"))
        shown.write_text(page, encoding="utf-8")
        read.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
        flags = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += [f"--window-size={WIDTH},{HEIGHT}"]
        subprocess.run([*flags, f"--screenshot={picture}", shown.as_uri()], check=True, capture_output=True)
        dumped = subprocess.run([*flags, "--dump-dom", read.as_uri()], check=True, capture_output=True, text=True)
        body = re.search(r"<body[^>]*>(.*)</body>", dumped.stdout, flags=re.DOTALL)
        assert body is not None
        with Image.open(picture) as image:
            return _without_margins(image.convert("RGB")), _lines(html.unescape(body[1]))


def checksum(path: Path) -> str:
    """Return the SHA-256 of a picture."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _lines(text: str) -> str:
    return "\n".join(line for each in text.splitlines() if (line := " ".join(each.split())))


def _without_margins(image: Image.Image) -> Image.Image:
    """Cut off the empty space above and below, except for a border."""
    pixels = np.asarray(image)
    rows = np.flatnonzero((pixels != pixels[-1, -1]).any(axis=(1, 2)))
    return image.crop((0, max(rows[0] - BORDER, 0), image.width, min(rows[-1] + BORDER, image.height)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    if shutil.which(given.browser) is None:
        print(f"the pictures were not checked: there is no {given.browser}; name a browser with --browser")
        return
    results = stored.read(RESULTS) if RESULTS.exists() else {}
    for name, picture in PICTURES.items():
        files = find_data(picture, given.data)
        if files is None:
            print(f"{name}: kept, since its data are not below {given.data}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            image, text = take(write_report(picture, Path(folder), files), picture.hidden, given.browser)
        path = DOCS / name
        known = results.get(name, {})
        if not given.all and path.exists() and known == {"lines": text.splitlines(), "sha256": checksum(path)}:
            print(f"{name}: up to date")
            continue
        image.quantize(256).save(path, optimize=True)
        results[name] = {"lines": text.splitlines(), "sha256": checksum(path)}
        print(f"{name}: taken, {image.size[0]} × {image.size[1]}, {path.stat().st_size / 1000:.0f} kB")
    stored.write(RESULTS, results)


if __name__ == "__main__":
    main()
