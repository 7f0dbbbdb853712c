"""Neural networks that grow while they train: the program ``simic-engine`` from Python.

* :func:`grow` grows a network on your data, from fresh weights or yours, and says whether that was worth it.
* :func:`adapt` teaches a trained network to read other images as well, and keeps it inside, unchanged.
* :func:`run` plays a scenario, :func:`runs` lists recorded runs, and :class:`Run` has their events as Arrow tables.
* :class:`Trajectories` has the observations and decisions of controllers, as numpy arrays.
* :func:`load_network` gives an exported network as an ``nn.Module``.
* ``VectorEnv`` makes the engine an environment of Gymnasium; it needs ``pip install 'simic-engine[envs]'``.
* :func:`program` and :func:`environment` return the path of the program and the variables that it starts with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._program import environment, program
from .errors import EngineError
from .grow import Adapted, Grown, adapt, grow
from .networks import load_network
from .runs import Run, run, runs
from .trajectories import Trajectories

if TYPE_CHECKING:
    from .envs import VectorEnv

__all__ = [
    "Adapted",
    "EngineError",
    "Grown",
    "Run",
    "Trajectories",
    "VectorEnv",
    "adapt",
    "environment",
    "grow",
    "load_network",
    "program",
    "run",
    "runs",
]


def __getattr__(name: str) -> object:
    # Gymnasium is optional: only environments need it.
    if name == "VectorEnv":
        from .envs import VectorEnv

        return VectorEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
