"""A tiny run and a tiny sweep, played once by the program that was built."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The program of this repository, unless another one is to be tested.
os.environ.setdefault("SIMIC_ENGINE_PROGRAM", str(ROOT / "target" / "debug" / "simic-engine"))

import simic_engine as se  # noqa: E402

SCENARIO = """(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 1, n_envs: 2, max_steps: 8, seed: 7),
    policy: (controller: "actor_critic", net_cfg: (op_bias: (germinate: 4.0))),
    lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
)"""

SWEEP = """(
    name: "pair",
    scenario: "tiny.ron",
    set: [(path: "run.max_steps", value: 2)],
    axes: [(path: "policy.controller", values: list(["heuristic", "wait"]))],
)"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    (folder / "tiny.ron").write_text(SCENARIO)
    (folder / "pair.ron").write_text(SWEEP)
    return folder


@pytest.fixture(scope="session")
def tiny(folder: Path) -> se.Run:
    return se.run(folder / "tiny.ron", set={"run.rounds": 2}, out=folder / "runs", threads=1)


@pytest.fixture(scope="session")
def pair(folder: Path) -> se.Run:
    return se.run(folder / "pair.ron", out=folder / "runs", threads=1)


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed torch of another version, as the package index would leave it."""
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    about = tmp_path / "torch-2.9.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
