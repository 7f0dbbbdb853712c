"""Exported policies in plain PyTorch: the engine's decisions, with the same probabilities, from the same observations."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import simic_engine as se
import torch
from test_export import write_safetensors

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5


def exported(place: Path, folder: Path) -> tuple[ModuleType, Path]:
    """The module of a policy, and the folder that the engine had saved it in."""
    program = os.environ["SIMIC_ENGINE_PROGRAM"]
    command = [program, "export", str(place), "--policy", "-o", str(folder), "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    spec = importlib.util.spec_from_file_location(f"policy_{folder.name}", folder / "policy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, Path(answer["from"])


def decisions_of(run: se.Run) -> dict[tuple[int, int], dict[str, Any]]:
    """Decisions of the first round, by step and env."""
    lines = (run.path / "events.jsonl").read_text().splitlines()
    decided = {}
    for event in map(json.loads, lines):
        if event["type"] == "decision" and event["round"] == 0:
            decided[event["step"], event["env"]] = event["data"]
    return decided


def action_of(decision: dict[str, Any], members: dict[str, list[str]], mask: np.ndarray) -> list[int]:
    """A recorded decision as a factored action; heads that it does not name have one legal member."""
    targets = {0.5: "half", 0.7: "seventy", 1.0: "full"}
    named = {"op": decision["op"], "slot": decision.get("slot"), **decision.get("choice", {})}
    if "alpha_target" in named:
        named["alpha_target"] = targets[named["alpha_target"]]
    legal = np.split(mask[members["op"].index(decision["op"].lower())], np.cumsum([len(of) for of in members.values()])[:-1])
    action = []
    for (head, of_head), cells in zip(members.items(), legal):
        name = named.get(head)
        action.append(int(np.argmax(cells)) if name is None else of_head.index(str(name).lower()))
    return action


@pytest.mark.parametrize(
    ("conditioning", "sizes"),
    [
        ("per_slot", "layers: 1"),
        ("per_op", "layers: 2, hidden_dim: 32"),
        ("shared", "layers: 1, hidden_dim: 40"),
    ],
)
def test_probabilities_are_those_of_the_engine(folder: Path, tmp_path: Path, conditioning: str, sizes: str) -> None:
    net = f"(head_conditioning: {conditioning}, {sizes}, op_bias: (germinate: 2.0, prune: 0.0))"
    settings = {"policy.net_cfg": net, "run.max_steps": 12, "run.n_envs": 3}
    trained = se.run(folder / "tiny.ron", set=settings | {"run.rounds": 2}, out=tmp_path, threads=1)
    policy, saved = exported(trained.path, tmp_path / conditioning)
    # A run begins with its floors whole; those that are exported have been lowered by training.
    policy.FLOORS.update(zip(policy.MEMBERS, [0.03, 0.03, 0.03, 0.05, 0.03, 0.03, 0.02, 0.01]))
    settings |= {"policy.init_from": f'"{saved}"', "run.seed": 11}
    played = se.run(folder / "tiny.ron", set=settings, out=tmp_path, threads=1)
    decided = decisions_of(played)

    env = se.VectorEnv(folder / "tiny.ron", set=settings, actions="factored", threads=1)
    assert env.heads == policy.MEMBERS
    net, state = policy.load(), None
    observations, infos = env.reset()
    operations = set()
    for step in range(1, env.max_steps + 1):
        shown = (observations, infos["blueprints"], infos["action_mask"])
        waits = {"op": "wait"}
        actions = torch.tensor(
            [
                action_of(decided.get((step, index), waits), policy.MEMBERS, infos["action_mask"][index])
                for index in range(env.num_envs)
            ]
        )
        with torch.inference_mode():
            taken, log_probs, _, state = net.decide(*shown, state, infos["decides"], actions=actions)
        assert torch.equal(taken, actions)
        for index in range(env.num_envs):
            decision = decided.get((step, index))
            assert (decision is None) == (not infos["decides"][index])
            if decision is not None:
                operations.add(decision["op"])
                probabilities = dict(zip(policy.MEMBERS, log_probs[index].exp().tolist()))
                for head, probability in decision.get("p", {}).items():
                    assert math.isclose(probabilities.pop(head), probability, rel_tol=TOLERANCE), (step, index, head)
                # Those that are not named had no choice.
                assert all(math.isclose(rest, 1.0) for rest in probabilities.values()), (step, index, probabilities)
        observations, _, _, _, infos = env.step(actions.numpy())
    env.close()
    assert {"WAIT", "GERMINATE"} < operations


def test_a_policy_plays_and_ends_with_its_envs(folder: Path, tmp_path: Path, tiny: se.Run) -> None:
    policy, _ = exported(tiny.path, tmp_path / "policy")
    net = policy.load()
    env = se.VectorEnv(folder / "tiny.ron", actions="factored", threads=1)
    torch.manual_seed(0)
    state, (observations, infos) = None, env.reset(seed=3)
    for _ in range(env.max_steps):
        with torch.inference_mode():
            shown = (observations, infos["blueprints"], infos["action_mask"])
            actions, log_probs, values, state = net.decide(*shown, state, infos["decides"], sample=True)
        assert log_probs.shape == actions.shape == (env.num_envs, 8) and values.shape == (env.num_envs,)
        observations, _, ended, _, infos = env.step(actions.numpy())
    assert np.all(ended)
    env.close()


def test_the_policy_that_is_committed_computes_the_same(tmp_path: Path) -> None:
    """With SIMIC_ENGINE_COMMIT_EXPORTED=FOLDER its logits are written there, for the engine's own tests."""
    policy, _ = exported(ROOT / "proof" / "policy", tmp_path / "policy")
    place = ROOT / "tests" / "exported" / "policy"
    if "SIMIC_ENGINE_COMMIT_EXPORTED" in os.environ:
        place = Path(os.environ["SIMIC_ENGINE_COMMIT_EXPORTED"]) / "policy"
        (place / "policy.py").write_bytes((tmp_path / "policy" / "policy.py").read_bytes())
        torch.manual_seed(1)
        observations = torch.randn(3, 4, policy.OBSERVATION)
        # Flags of slots are 0 or 1.
        flags = policy.load().flag.unique()[1:]
        observations[..., flags] = (observations[..., flags] > 0).float()
        blueprints = torch.randint(-1, len(policy.MEMBERS["blueprint"]), (3, 4, len(policy.MEMBERS["slot"])))
        with torch.inference_mode():
            net = policy.load()
            logits, value, _ = net(observations, blueprints)
            logits = {head: rows.flatten(2) for head, rows in logits.items()}
            shown = {"normalised": net.normalise(observations), "observations": observations, "blueprints": blueprints}
        write_safetensors(place / "pytorch.safetensors", shown | logits | {"value": value})
    committed = policy.read_safetensors(place / "pytorch.safetensors")
    with torch.inference_mode():
        logits, value, _ = policy.load()(committed["observations"], committed["blueprints"])
    for head, rows in logits.items():
        assert torch.allclose(rows.flatten(2), committed[head], rtol=TOLERANCE, atol=TOLERANCE)
    assert torch.allclose(value, committed["value"], rtol=TOLERANCE, atol=TOLERANCE)
