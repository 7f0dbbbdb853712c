"""The guide's Python code, run as a reader would run it: every block of a page, in order."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT

import simic_engine as se
from simic_engine._program import call

PAGES = ROOT / "docs" / "guide" / "src"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_python_of_the_page_on_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "pandas", "polars", "duckdb"):
        pytest.importorskip(module, reason=f"the guide shows {module}")
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks("python.md"):
        exec(compile(block, "python.md", "exec"), names)
    assert (tmp_path / "accuracy.png").stat().st_size > 0


def test_an_exported_network_is_loaded_as_the_guide_says(
    tiny: se.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    call(["export", str(tiny.path), "-o", "grown"])
    names: dict[str, object] = {"images": torch.zeros(2, 8, 8, 1, dtype=torch.uint8)}
    source = blocks("take_it_away.md")[0].replace("network.CLASSES[index]", "int(index)")
    exec(compile(source, "take_it_away.md", "exec"), names)
    logits = names["logits"]
    assert isinstance(logits, torch.Tensor) and logits.shape == (2, 10)
    with pytest.raises(ValueError, match="torch.uint8 .n, height, width, 1., not as torch.float32"):
        names["network"].normalise(torch.zeros(2, 1, 8, 8))  # type: ignore[attr-defined]
    pytest.importorskip("onnxscript", reason="the guide shows ONNX")
    exec(compile(blocks("take_it_away.md")[1], "take_it_away.md", "exec"), names)
    assert (tmp_path / "network.onnx").stat().st_size > 0


def test_an_exported_policy_decides_as_the_guide_says(
    tiny: se.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    call(["export", str(tiny.path), "--policy", "-o", "policy"])
    names: dict[str, object] = {}
    exec(compile(blocks("take_it_away.md")[-1], "take_it_away.md", "exec"), names)
    actions, terminated = names["actions"], names["terminated"]
    assert isinstance(actions, torch.Tensor) and actions.shape == (4, 8)
    assert isinstance(terminated, np.ndarray) and terminated.all()
