"""The Python of the guide as a reader follows it: every block of a page, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = ROOT / "docs" / "guide" / "src"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in sorted(PAGES.glob("*.md")) if blocks(page)], ids=lambda page: page.stem)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "pandas", "polars", "duckdb"):
        pytest.importorskip(module, reason=f"the guide shows {module}")
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)
    assert (tmp_path / "accuracy.png").stat().st_size > 0
