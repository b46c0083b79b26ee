"""Take the pictures of the case studies: parts of the reports that ``case_studies.py measure --keep REPORTS`` kept.

    python benchmarks/case_study_pictures.py REPORTS --browser chromium

``REPORTS/start/report.html`` is the report that the commands of docs/index.md write. Missing reports are skipped.
Each picture is a report with some of its sections hidden, as the browser shows it, in 256 colors.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

DOCS = Path(__file__).parents[1] / "docs"
WIDTH, HEIGHT, BORDER = 1100, 3000, 24
# Picture → report, and the parts of the page that the picture leaves out.
PICTURES = {
    "report.png": (
        "start/report.html",
        ".notices, nav, section:not(#classes), #classes > p, footer",
    ),
    "imagenet.png": (
        "imagenet/dino.html",
        "header ul, .notices, nav, section:not(#classes), #classes > p, footer, tbody tr:nth-child(n+6)",
    ),
    "case-studies/imagenet-compare.png": (
        "imagenet/diff.html",
        "nav, section:not(#slopes), footer",
    ),
    "case-studies/clinc150-fix.png": (
        "clinc150/fix.html",
        "header, section:not(#remedies):not(#proof), table, footer, #remedies > p:first-of-type",
    ),
}


def take(report: Path, hidden: str, browser: str) -> Image.Image:
    """Return a picture of a report without the elements that the selector ``hidden`` matches."""
    text = report.read_text(encoding="utf-8")
    style = f"<style>{hidden} {{ display: none !important }} .scroll {{ max-height: none !important }}</style>"
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder, "page.html"), Path(folder, "page.png")
        page.write_text(text.replace("</head>", f"{style}</head>"), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
        subprocess.run([browser, *flags, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)
        with Image.open(picture) as image:
            return _without_margins(image.convert("RGB"))


def _without_margins(image: Image.Image) -> Image.Image:
    """Cut off the empty space above and below, except for a border."""
    pixels = np.asarray(image)
    rows = np.flatnonzero((pixels != pixels[-1, -1]).any(axis=(1, 2)))
    return image.crop((0, max(rows[0] - BORDER, 0), image.width, min(rows[-1] + BORDER, image.height)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("--browser", default="chromium")
    given = parser.parse_args()
    for name, (report, hidden) in PICTURES.items():
        if not (given.reports / report).exists():
            continue
        picture = take(given.reports / report, hidden, given.browser)
        picture.quantize(256).save(DOCS / name, optimize=True)
        print(name, picture.size, f"{(DOCS / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
