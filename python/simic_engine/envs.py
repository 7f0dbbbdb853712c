"""The envs of a scenario as a ``gymnasium.vector.VectorEnv``: growing networks, decided on from Python."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ._pipe import Pipe
from ._values import integers, settings

if TYPE_CHECKING:
    from .sb3 import SB3VecEnv

Infos = dict[str, Any]
#: Names of the statistics of an episode in ``infos["final_info"]["episode"]``.
_STATISTICS = {"return": "r", "length": "l"}


class VectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Networks that grow while they train, one in each env. Once per step, an action decides what happens to a slot.

    An episode is a training from a fresh network to ``max_steps``. All envs of a round end together, and the reply to the last
    step has the first observations of the next episodes (``SAME_STEP``); ``infos["final_obs"]`` and ``infos["final_info"]``
    are those of the episodes that ended. ``infos["action_mask"]`` and :meth:`action_masks` say which actions are legal.
    Any other raises :class:`~simic_engine.errors.EngineError` and changes nothing. An env that was rolled back by the governor,
    or whose episode ended before those of the others, may only wait: ``infos["decides"]`` is false there. The engine is a process
    that ends with :meth:`close`, at the end of a ``with`` block, or when nothing refers to the envs any longer.

    Args:
        scenario: A scenario file; the built-in quickstart if left out.
        num_envs: Number of envs; the scenario's ``run.n_envs`` if left out.
        set: Fields of the scenario by dotted path, as ``--set`` does: numbers, booleans, lists, or RON as text.
        actions: ``"flat"``: one of the commands in :attr:`action_names`. ``"factored"``: one member for each of :attr:`heads`;
            the mask of an env is ``[operations, members of all heads]``, with a row per operation.
        threads: Threads of the engine; all cores if left out.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        scenario: str | os.PathLike[str] | None = None,
        num_envs: int | None = None,
        *,
        set: Mapping[str, Any] | None = None,
        actions: Literal["flat", "factored"] = "flat",
        threads: int | None = None,
    ) -> None:
        arguments = [] if scenario is None else [os.fspath(scenario)]
        arguments += settings(dict(set or {}) | ({} if num_envs is None else {"run.n_envs": num_envs}))
        if threads is not None:
            arguments += ["--threads", str(threads)]
        self._pipe = Pipe(arguments, actions)
        spaces = self._pipe.spaces
        self.num_envs = spaces["envs"]
        #: Steps of an episode.
        self.max_steps: int = spaces["max_steps"]
        #: Names of the elements of an observation.
        self.observation_names: list[str] = spaces["observation"]
        #: Names of the flat actions; empty for factored ones.
        self.action_names: list[str] = spaces["actions"].get("names", [])
        #: Members of each head by its name; empty for flat actions.
        self.heads: dict[str, list[str]] = {
            head["name"]: head["members"] for head in spaces["actions"].get("heads", [])
        }
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(self.observation_names),), np.float32)
        self.single_action_space: gymnasium.Space[Any] = (
            gymnasium.spaces.MultiDiscrete([len(members) for members in self.heads.values()])
            if self.heads
            else gymnasium.spaces.Discrete(len(self.action_names))
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._mask: np.ndarray | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Infos]:
        """Begins new episodes in all envs. The same seed gives the same bits; without one the first reset takes the scenario's
        seed, and later ones draw theirs. ``options`` are ignored."""
        seed = None if seed is None else operator.index(seed)
        super().reset(seed=seed)
        if seed is None and self._mask is not None:
            seed = int(self.np_random.integers(2**32))
        elif seed is None:
            super().reset(seed=self._pipe.spaces["seed"] % 2**63)
        _, arrays = self._pipe.ask({"kind": "reset", "seed": seed})
        return arrays["observations"], self._infos(arrays)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Decides for all envs, and trains them up to the next decision. Actions that aren't integers raise ``TypeError``."""
        header, arrays = self._pipe.ask({"kind": "step"}, integers(actions, "actions"))
        infos = self._infos(arrays)
        ended = "episodes" in header
        terminated = arrays["terminated"].astype(bool) if ended else np.zeros(self.num_envs, bool)
        if ended:
            episode = {"episode": _columns(header["episodes"]), "_episode": np.ones(self.num_envs, bool)}
            infos |= {"final_obs": arrays["final_observations"], "_final_obs": np.ones(self.num_envs, bool)}
            infos |= {"final_info": episode, "_final_info": np.ones(self.num_envs, bool)}
        return arrays["observations"], arrays["rewards"], terminated, ended & ~terminated, infos

    def action_masks(self) -> np.ndarray:
        """The legal actions of each env: ``infos["action_mask"]`` as booleans, which ``MaskablePPO`` of sb3-contrib expects."""
        if self._mask is None:
            raise gymnasium.error.ResetNeeded("action_masks() needs a reset() before it")
        return self._mask.copy()

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close_extras(self, **_: Any) -> None:
        """Ends the engine."""
        self._pipe.close()

    def _infos(self, arrays: dict[str, np.ndarray]) -> Infos:
        self._mask = arrays["action_mask"].astype(bool)
        return {
            # A copy keeps the mask of legal actions unchanged.
            "action_mask": self._mask.astype(np.int8),
            "decides": arrays["decides"].astype(bool),
            "blueprints": arrays["blueprints"],
        }


def sb3_env(*args: Any, **kwargs: Any) -> SB3VecEnv:
    """A :class:`VectorEnv` with these arguments for Stable-Baselines3, as ``MaskablePPO`` of sb3-contrib trains on."""
    from .sb3 import SB3VecEnv

    return SB3VecEnv(VectorEnv(*args, **kwargs))


def _columns(episodes: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Statistics by name, one element an env; NaN where a number was not measured."""
    columns = {}
    for name in episodes[0].keys() | {"error"}:
        values = [episode.get(name) for episode in episodes]
        if name not in ("end", "error") and not all(isinstance(value, int) for value in values):
            # "nan" and "inf" are text in JSON.
            values = [float("nan") if value is None else float(value) for value in values]
        columns[_STATISTICS.get(name, name)] = np.array(values, object if name in ("end", "error") else None)
    return columns
