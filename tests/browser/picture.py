"""The picture of a report that README shows: the quickstart's, its first screen."""

import sys
import tempfile
from pathlib import Path

from browser import Browser
from runs import REPOSITORY, engine


def main(picture):
    with tempfile.TemporaryDirectory(prefix="simic-picture-") as folder, Browser() as browser:
        engine("run", REPOSITORY / "scenarios/quickstart.ron", "--out", folder, "--progress", "none")
        page = Path(folder) / "report.html"
        engine("report", "latest", "--out", folder, "-o", page)
        browser.size(1200, 1180)
        browser.open(page.as_uri())
        browser.wait("return document.querySelector('.legend output')")
        browser.screenshot(picture)


if __name__ == "__main__":
    main(sys.argv[1])
