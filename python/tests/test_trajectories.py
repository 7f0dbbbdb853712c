"""Trajectories from Python: what the engine recorded, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import simic_engine as se

SCENARIO = """(
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: (rounds: 2, n_envs: 2, max_steps: 8, trajectories: true),
    policy: (controller: "actor_critic"),
)"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> se.Run:
    folder = tmp_path_factory.mktemp("trajectories")
    (folder / "tiny.ron").write_text(SCENARIO)
    return se.run(folder / "tiny.ron", out=folder / "runs")


def test_segments_are_what_the_run_decided(played: se.Run) -> None:
    recorded = se.Trajectories(played.path)
    segments = list(recorded)
    assert len(segments) == len(recorded) == 4
    events = [json.loads(line) for line in (played.path / "events.jsonl").read_text().splitlines()]
    decisions = {(e["round"], e["env"], e["step"]): e["data"]["reward"] for e in events if e["type"] == "decision"}
    for segment in segments:
        steps, width = segment["observation"].shape
        assert (steps, width) == (8, len(recorded.manifest["observation"]))
        assert segment["final_observation"].shape == (width,)
        assert np.isfinite(segment["log_probs"]).all() and (segment["log_probs"] <= 0).all()
        for step, reward in zip(segment["step"], segment["reward"], strict=True):
            paid = decisions[int(segment["round"]), int(segment["env"]), int(step)]
            assert reward == pytest.approx(paid, abs=1e-4)


def test_a_shard_that_was_changed_is_refused(played: se.Run, tmp_path: Path) -> None:
    for file in (played.path / "episodes.traj").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    shard = tmp_path / se.Trajectories(tmp_path).manifest["shards"][0]["file"]
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(se.EngineError, match="SHA-256"):
        list(se.Trajectories(tmp_path))
    with pytest.raises(se.EngineError, match="set of trajectories"):
        se.Trajectories(tmp_path / "nowhere")
