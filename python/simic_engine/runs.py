"""Starts runs, lists them, and reads their records as Arrow tables."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow
import pyarrow.parquet

from ._program import call
from ._values import number, settings, table
from .errors import EngineError


def run(
    scenario: str | os.PathLike[str],
    *,
    set: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Run:
    """Plays a scenario or a sweep file to its end and returns its run.

    ``set`` replaces fields by path: ``{"run.rounds": 4, "policy.controller": "heuristic"}``. ``out`` is the folder of runs,
    ``runs`` if left out. ``threads`` are all cores if left out. ``progress`` shows the progress. Raises :class:`EngineError`
    if the run is refused or fails.
    """
    arguments = ["run", os.fspath(scenario), *settings(set)]
    if out is not None:
        arguments += ["--out", os.fspath(out)]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    if not progress:
        arguments += ["--progress", "none"]
    ended = cast("dict[str, Any]", call(arguments, progress))
    return Run(ended["directory"] if "directory" in ended else _root(out) / "sweeps" / ended["name"])


def runs(out: str | os.PathLike[str] | None = None) -> list[Run]:
    """All runs in a folder of runs, the oldest first."""
    listed = call(["runs", *(["--out", os.fspath(out)] if out is not None else [])])
    return [Run(entry["directory"]) for entry in cast("list[dict[str, Any]]", listed)]


class Run:
    """A recorded run, or a sweep: the content of its folder.

    It may still be in play: every access reads what is there by then.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the run in ``path``, or the newest one by the file ``latest`` next to it."""
        self.path = Path(path).absolute()
        if self.path.name == "latest" and self.path.is_file():
            self.path = self.path.with_name(self.path.read_text().strip())
        if not self.path.is_dir():
            raise EngineError(f"there is no run {path}; simic_engine.runs() lists all runs")
        self._exported: tuple[object, tempfile.TemporaryDirectory[str]] | None = None

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    def __str__(self) -> str:
        """Its progress, and its best networks next to the host that never grew."""
        try:
            said = self.results
        except EngineError as error:
            return f"{self!r}: {error}"
        if "trials" in said:
            done = sum(trial.get("result") is not None for trial in said["trials"])
            return f"{said['name']}: {done} of {len(said['trials'])} trials"
        text = f"{said.get('scenario')}, {said['state']}: {said.get('rounds')} of {said.get('n_rounds')} rounds"
        results = said.get("results") or {}
        hosts = [
            (f"round {host['round'] + 1}, env {host['env']}", host["test_accuracy"], host["accuracy"], host["param_ratio"])
            for host in (results.get("front") or [])[:5]
        ]
        if still := results.get("baseline"):
            hosts.append(("never grown", still["test_accuracy"], still["val_accuracy"], 1.0))
        rows = [(name, number(test, ".2f"), number(val, ".2f"), number(size, ".2f") + "x") for name, test, val, size in hosts]
        return f"{text}\n{table(('network', 'test %', 'val %', 'parameters'), rows)}" if rows else text

    @property
    def results(self) -> dict[str, Any]:
        """Output of ``simic-engine show --json`` for it: state, results, and how it ended."""
        return cast("dict[str, Any]", call(["show", str(self.path)]))

    @property
    def status(self) -> str:
        """``starting``, ``running``, ``stopping``, ``completed``, ``interrupted``, ``failed``, ``stale`` or ``unreadable``."""
        results = self.results
        # A sweep has only the state of its trials.
        return str(results["state"] if "state" in results else "completed" if results["is_complete"] else "running")

    def table(self, name: str) -> pyarrow.Table:
        """A table by its name; ``docs/reference/tables.md`` explains its columns."""
        folder = self._export()
        file = folder / f"{name}.parquet"
        if not file.is_file():
            there = ", ".join(sorted(path.stem for path in folder.glob("*.parquet")))
            raise EngineError(f"{self.path} has no table {name}; it has {there}")
        return pyarrow.parquet.read_table(file)

    @property
    def rounds(self) -> pyarrow.Table:
        """A row for every finished round."""
        return self.table("rounds")

    @property
    def steps(self) -> pyarrow.Table:
        """A row for every env and step."""
        return self.table("steps")

    @property
    def seed_steps(self) -> pyarrow.Table:
        """A row for every seed and step."""
        return self.table("seed_steps")

    @property
    def seeds(self) -> pyarrow.Table:
        """A row for every seed: its life."""
        return self.table("seeds")

    @property
    def decisions(self) -> pyarrow.Table:
        """A row for every decision of a controller."""
        return self.table("decisions")

    @property
    def updates(self) -> pyarrow.Table:
        """A row for every update of the policy."""
        return self.table("updates")

    @property
    def episodes(self) -> pyarrow.Table:
        """A row for every env and round."""
        return self.table("episodes")

    @property
    def trials(self) -> pyarrow.Table:
        """A row for every training of a sweep."""
        return self.table("trials")

    def _export(self) -> Path:
        """The folder of its tables, written again only when something was recorded since."""
        recorded = [*self.path.glob("events*.jsonl*"), *self.path.glob("results/*.json")]
        state = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in recorded)
        if self._exported is None or self._exported[0] != state:
            folder = tempfile.TemporaryDirectory(prefix="simic-engine-tables-")
            call(["export-tables", str(self.path), "-o", folder.name])
            self._exported = (state, folder)
        return Path(self._exported[1].name)


def _root(out: str | os.PathLike[str] | None) -> Path:
    return Path(out if out is not None else os.environ.get("SIMIC_ENGINE_RUNS", "runs"))
