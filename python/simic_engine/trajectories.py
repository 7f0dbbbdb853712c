"""Trajectories: the observations, legal choices, decisions and outcomes of a run's controller, as numpy arrays."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load

from .errors import EngineError


class Trajectories:
    """A set of trajectories, as ``run.trajectories`` writes it.

    Iterating yields a dictionary for each segment, an unbroken stretch of one env's episode: arrays with a row per step, and
    the values of the segment as a whole. ``docs/reference/trajectories.md`` describes them. One round is read at a time, so
    sets of any size need little memory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the set in ``path``, or the one that the run in ``path`` has recorded."""
        own = Path(path) / "episodes.traj"
        self.path = own if own.is_dir() else Path(path)
        try:
            self.manifest: dict[str, Any] = json.loads((self.path / "manifest.json").read_text())
        except FileNotFoundError:
            raise EngineError(f"{self.path} isn't a set of trajectories: it has no manifest.json") from None
        if self.manifest["format"] != 1:
            raise EngineError(f"{self.path}: format {self.manifest['format']}, but this version reads 1")

    def __repr__(self) -> str:
        return f"Trajectories({str(self.path)!r})"

    def __len__(self) -> int:
        """Segments."""
        return sum(int(shard["segments"]) for shard in self.manifest["shards"])

    def __iter__(self) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        for shard in self.manifest["shards"]:
            path = self.path / shard["file"]
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != shard["sha256"]:
                raise EngineError(f"{path}: its SHA-256 differs from the manifest's: the file was changed, or copied in part")
            tensors = load(content)
            offsets = tensors.pop("offsets")
            for index, (first, end) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
                rows = {name: tensor[first:end] for name, tensor in tensors.items() if name not in OF_SEGMENTS}
                yield rows | {name: tensors[name][index] for name in OF_SEGMENTS}


#: Arrays with a row per segment.
OF_SEGMENTS = ("round", "env", "policy_version", "finish", "final_observation", "final_blueprints")
