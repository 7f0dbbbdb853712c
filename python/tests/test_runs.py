"""Runs from Python: what is played, what is read, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

import simic_engine as se
from conftest import ROOT

PAGE = (ROOT / "docs" / "reference" / "tables.md").read_text()
TYPES = {"integer": "int64", "number": "double", "text": "string", "flag": "bool"}


def declared(table: str) -> dict[str, str]:
    """Names and types of a table's columns, as the page has them."""
    section = PAGE.split(f"\n## {table}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (\w+)", section, re.MULTILINE)
    return {name: TYPES[kind] for name, kind in rows}


def events(run: se.Run) -> list[dict]:
    return [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["rounds", "steps", "seed_steps", "seeds", "decisions", "updates", "episodes"])
def test_a_table_of_a_run_has_the_columns_that_its_page_declares(tiny: se.Run, name: str) -> None:
    table = getattr(tiny, name)
    assert {field.name: str(field.type) for field in table.schema} == declared(name)
    assert table.num_rows > 0


def test_rows_are_what_was_recorded(tiny: se.Run) -> None:
    of = {kind: [event for event in events(tiny) if event["type"] == kind] for kind in ("env_step", "round_finished")}
    assert tiny.rounds["accuracy_mean"].to_pylist() == [event["data"]["accuracy_mean"] for event in of["round_finished"]]
    assert tiny.steps.num_rows == len(of["env_step"]) == 2 * 2 * 8
    seen = {(row["round"], row["env"], row["step"]): row["val_accuracy"] for row in tiny.steps.to_pylist()}
    for event in of["env_step"]:
        assert seen[event["round"], event["env"], event["step"]] == event["data"]["val_accuracy"]


def test_a_seed_is_one_row_from_its_germination_to_its_end(tiny: se.Run) -> None:
    planted = [event for event in events(tiny) if event["type"] == "seed_germinated"]
    committed = {event["seed_id"]: event["step"] for event in events(tiny) if event["type"] == "seed_committed"}
    seeds = tiny.seeds.to_pylist()
    assert [seed["seed_id"] for seed in seeds] == [event["seed_id"] for event in planted]
    assert {seed["seed_id"]: seed["committed_step"] for seed in seeds if seed["committed_step"]} == committed
    assert committed, "the scenario commits seeds"
    assert {seed["last_stage"] for seed in seeds if seed["seed_id"] in committed} == {"COMMITTED"}
    assert set(tiny.seed_steps["seed_id"].to_pylist()) <= {seed["seed_id"] for seed in seeds}


def test_a_sweep_has_its_trials_with_the_fields_that_they_differ_in(pair: se.Run) -> None:
    trials = pair.trials
    assert {field.name: str(field.type) for field in trials.schema} == {
        **declared("trials"),
        "policy.controller": "string",
    }
    assert sorted(trials["policy.controller"].to_pylist()) == ["heuristic", "wait"]
    assert set(trials["state"].to_pylist()) == {"done"}
    assert pair.status == "completed"
    with pytest.raises(se.EngineError, match="has no table rounds; it has trials"):
        pair.rounds


def test_results_and_status_are_those_of_show(tiny: se.Run) -> None:
    assert tiny.status == "completed"
    results = tiny.results["results"]
    assert len(results["rounds"]) == 2
    assert results["baseline"]["test_accuracy"] > 0
    assert results["front"][0]["test_accuracy"] > 0


def test_a_run_prints_as_its_best_networks(tiny: se.Run, folder: Path) -> None:
    lines = str(tiny).splitlines()
    assert lines[0] == "tiny, completed: 2 of 2 rounds"
    assert lines[1].split() == ["network", "test", "%", "val", "%", "parameters"]
    results = tiny.results["results"]
    best, still = results["front"][0], results["baseline"]
    name = f"round {best['round'] + 1}, env {best['env']}"
    assert lines[2].split() == [*name.split(), f"{best['test_accuracy']:.2f}", f"{best['accuracy']:.2f}", f"{best['param_ratio']:.2f}x"]
    assert lines[-1].split() == ["never", "grown", f"{still['test_accuracy']:.2f}", f"{still['val_accuracy']:.2f}", "1.00x"]
    assert len(lines) == 3 + min(5, len(results["front"]))
    assert repr(tiny) == f"Run({str(tiny.path)!r})"


def test_a_sweep_and_an_unreadable_run_print_in_a_line(pair: se.Run, tmp_path: Path) -> None:
    assert str(pair) == "pair: 2 of 2 trials"
    assert str(se.Run(tmp_path)).startswith(f"Run({str(tmp_path)!r}): ")


def test_runs_are_listed_and_the_newest_is_latest(tiny: se.Run) -> None:
    out = tiny.path.parent
    assert tiny.path in [run.path for run in se.runs(out)]
    assert se.Run(out / "latest").path in [run.path for run in se.runs(out)]


def test_tables_are_written_again_only_when_something_was_recorded(tiny: se.Run) -> None:
    first = tiny._export()
    assert tiny._export() == first
    record = tiny.path / "events.jsonl"
    time_before = record.stat().st_mtime_ns
    os.utime(record, ns=(time_before, time_before + 1))
    assert tiny._export() != first


def test_the_command_writes_the_same_as_the_package(tiny: se.Run, tmp_path: Path) -> None:
    command = [se.program(), "export-tables", tiny.path, "-o", tmp_path / "tables"]
    subprocess.run(command, check=True, env=se.environment(), capture_output=True)
    assert pyarrow.parquet.read_table(tmp_path / "tables" / "steps.parquet").equals(tiny.steps)


def test_values_are_set_as_a_scenario_has_them(folder: Path) -> None:
    out = folder / "set"
    fields = {"run.rounds": 1, "run.max_steps": 1, "run.devices": ["cpu"], "run.deterministic": True, "name": "other"}
    run = se.run(folder / "tiny.ron", set=fields, out=out, threads=1)
    resolved = (run.path / "resolved.ron").read_text()
    assert 'name: "other"' in resolved
    assert "deterministic: true" in resolved
    assert run.rounds.num_rows == 1


def test_what_is_refused_is_an_exception_with_the_message_of_the_program(folder: Path) -> None:
    with pytest.raises(se.EngineError, match="`run` has no `bogus`; valid: rounds") as refused:
        se.run(folder / "tiny.ron", set={"run.bogus": 3}, out=folder / "runs")
    assert refused.value.exit_code == 2
    with pytest.raises(se.EngineError, match="cannot read the scenario"):
        se.run(folder / "missing.ron", out=folder / "runs")
    with pytest.raises(se.EngineError, match="there is no run"):
        se.Run(folder / "missing")


def test_a_damaged_record_is_named_by_file_and_line(tiny: se.Run, tmp_path: Path) -> None:
    for file in ("manifest.json", "resolved.ron", "events.jsonl"):
        (tmp_path / file).write_bytes((tiny.path / file).read_bytes())
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    lines[3] = lines[3].replace('"seq"', '"sequence"')
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(se.EngineError, match=r"events\.jsonl:4"):
        se.Run(tmp_path).rounds


def test_a_missing_program_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SIMIC_ENGINE_PROGRAM", str(tmp_path / "nothing"))
    with pytest.raises(se.EngineError, match="SIMIC_ENGINE_PROGRAM names .*nothing, which isn't a file"):
        se.program()
    monkeypatch.delenv("SIMIC_ENGINE_PROGRAM")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    with pytest.raises(se.EngineError, match="pip install ./python"):
        se.program()
    # A launcher isn't a program: it would start itself.
    launcher = tmp_path / "simic-engine"
    launcher.write_text("#!/usr/bin/env python3\n")
    launcher.chmod(0o755)
    with pytest.raises(se.EngineError, match="pip install ./python"):
        se.program()
    (tmp_path / "simic-engine-program").write_bytes(b"\x7fELF")
    assert se.program() == tmp_path / "simic-engine-program"


def test_a_torch_of_another_version_is_refused_with_both_versions(fake_torch: Path) -> None:
    with pytest.raises(se.EngineError, match=r"torch 2\.9\.1 is installed, but simic-engine needs torch 2\.11"):
        se.environment()


def test_libtorch_is_that_of_the_installed_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    first, second = se.environment()["LD_LIBRARY_PATH"].split(":")
    assert (Path(first) / "libtorch_cpu.so").is_file()
    assert second == "/elsewhere"


def long_run(folder: Path, out: Path) -> subprocess.Popen[str]:
    """Python that plays a run which would take minutes; it has begun to train."""
    script = (
        "import simic_engine as se\n"
        f"se.run({str(folder / 'tiny.ron')!r}, set={{'run.rounds': 100000}}, out={str(out)!r}, threads=1)"
    )
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    python = subprocess.Popen([sys.executable, "-c", script], env=variables, stderr=subprocess.PIPE, text=True)
    waited_until = time.monotonic() + 120
    while not list(out.glob("*/events.jsonl")):
        assert time.monotonic() < waited_until and python.poll() is None, python.communicate()
        time.sleep(0.1)
    return python


def ended(run: se.Run, state: str) -> bool:
    waited_until = time.monotonic() + 60
    while run.status != state:
        if time.monotonic() > waited_until:
            return False
        time.sleep(0.2)
    return True


def test_a_killed_python_ends_the_program(folder: Path, tmp_path: Path) -> None:
    python = long_run(folder, tmp_path)
    python.kill()
    python.wait()
    assert ended(se.Run(tmp_path / "latest"), "stale")


def test_an_interrupt_stops_the_run_so_that_it_can_be_resumed(folder: Path, tmp_path: Path) -> None:
    python = long_run(folder, tmp_path)
    python.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in python.communicate(timeout=120)[1]
    assert se.Run(tmp_path / "latest").status == "interrupted"


NETWORK = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor({scale}))

    def forward(self, x):
        return x * self.scale

def load(folder=None):
    return Net()
"""


def test_networks_of_two_folders_are_modules_of_their_own(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for name, scale in (("one", 1.0), ("two", 2.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "network.py").write_text(NETWORK.format(scale=scale))
    one, two = se.load_network(tmp_path / "one"), se.load_network(tmp_path / "two")
    assert (one(torch.ones(1)).item(), two(torch.ones(1)).item()) == (1.0, 2.0)
    assert type(one) is not type(two)
    assert type(se.load_network(tmp_path / "one")) is type(one)
    with pytest.raises(se.EngineError, match="doesn't hold an exported network"):
        se.load_network(tmp_path)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        se.nothing
