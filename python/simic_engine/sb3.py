"""A :class:`~simic_engine.envs.VectorEnv` in the protocol of Stable-Baselines3."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from .envs import VectorEnv


class SB3VecEnv(VecEnv):
    """Flat actions for Stable-Baselines3; ``MaskablePPO`` of sb3-contrib finds the masks by ``action_masks``.

    Masks of factored actions depend on the operation, which ``MaskablePPO`` cannot express: it masks each head by itself.
    """

    def __init__(self, env: VectorEnv) -> None:
        if env.heads:
            raise ValueError('SB3VecEnv takes flat actions; make the VectorEnv with actions="flat"')
        self.env = env
        self._actions: np.ndarray | None = None
        self._began = time.monotonic()
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> np.ndarray:
        seed = self._seeds[0]
        observations, infos = self.env.reset(seed=seed)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{"action_mask": mask} for mask in infos["action_mask"]]
        self._began = time.monotonic()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        if self._actions is None:
            raise RuntimeError("step_wait() needs a step_async() before it")
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self._actions = None
        done = terminated | truncated
        each: list[dict[str, Any]] = [
            {"action_mask": mask, "decides": decides}
            for mask, decides in zip(infos["action_mask"], infos["decides"], strict=True)
        ]
        if done.any():
            columns, seconds = infos["final_info"]["episode"], time.monotonic() - self._began
            for index, info in enumerate(each):
                info["terminal_observation"] = infos["final_obs"][index]
                info["TimeLimit.truncated"] = bool(truncated[index])
                info["episode"] = {name: column[index] for name, column in columns.items()} | {"t": seconds}
        return observations, rewards.astype(np.float32), done, each

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self.env, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError(f"the envs are in another process; {attr_name} cannot be set")

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(f"the envs have no method {method_name}, only action_masks")
        masks = self.env.action_masks()
        return [masks[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [False] * self._count(indices)

    def get_images(self) -> Sequence[np.ndarray | None]:
        return [None] * self.num_envs

    def _count(self, indices: VecEnvIndices) -> int:
        return len(list(self._get_indices(indices)))
