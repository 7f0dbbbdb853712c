"""Growing a network on arrays or files: what ``simic-engine grow`` does, with values in and out."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy

from ._program import call
from .errors import EngineError
from .networks import load_network
from .runs import written

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Grown:
    """What was grown: a folder of plain PyTorch, and the table beside it."""

    #: Holds ``network.py``, ``network.safetensors``, ``card.md``, ``grow.json`` and the scenarios.
    folder: Path
    #: ``choice``, ``rows`` and ``notes`` as ``grow.json`` has them.
    report: dict[str, Any]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each way to spend the compute: sizes, seconds, accuracies with intervals."""
        return cast("list[dict[str, Any]]", self.report["rows"])

    @property
    def why(self) -> str:
        """Which network it is, and why, in a sentence."""
        return str(self.report["choice"]["why"])

    @property
    def network(self) -> torch.nn.Module:
        """The network, in evaluation mode. It reads what its ``normalise`` makes of images as bytes."""
        return load_network(self.folder)


def grow(
    x: numpy.ndarray | str | os.PathLike[str],
    y: numpy.ndarray | None = None,
    *,
    host: str | torch.nn.Module | None = None,
    weights: Mapping[str, torch.Tensor] | str | os.PathLike[str] | None = None,
    freeze: bool = False,
    budget: str = "2x",
    normalise: tuple[Sequence[float], Sequence[float]] | None = None,
    test: tuple[numpy.ndarray, numpy.ndarray] | None = None,
    rates: Sequence[float] = (),
    tries: int = 4,
    steps: int | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Grown:
    """Grows a network on data within a budget, and compares it with what else the compute could have been spent on.

    ``x`` are images ``[n, height, width]`` or ``[n, height, width, channels]``, bytes or floats from 0 to 1, with labels ``y``; or
    the path of data that ``simic-engine data check`` reads. ``host`` is a family or a name of ``simic-engine list hosts``, or a
    module that :func:`to_host` understands, which is then the given network; ``weights`` a ``state_dict`` or a safetensors file to
    begin with, ``freeze`` leaves it as it is. ``normalise`` is mean and deviation of each channel, of pixels from 0 to 1, as the
    given network was trained; without it a given network reads pixels from 0 to 1 as they are, and a fresh one by the moments of
    the training part. ``test`` is a test part; without one it is drawn. ``out`` is a folder that must not
    be there yet, one of its own in the temporary folder if left out. Raises :class:`EngineError` if it is refused or fails.
    """
    folder = Path(out if out is not None else tempfile.mkdtemp(prefix="simic-engine-grown-"))
    with tempfile.TemporaryDirectory(prefix="simic-engine-data-") as scratch:
        # The scenario that is written beside the result names the data.
        place = folder.with_name(f"{folder.name}-data") if out is not None else Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        data = os.fspath(x) if isinstance(x, (str, os.PathLike)) else _write_data(place, x, y, test)
        arguments = ["grow", "--data", data, "--budget", budget, "--tries", str(tries), "-o", str(folder)]
        is_given = weights is not None or not isinstance(host, (str, type(None)))
        if host is not None and not isinstance(host, str):
            if weights is not None:
                raise EngineError("a module brings its own weights; leave out weights=, or name the host")
            from .hosts import to_host

            weights, host = to_host(host, _shape(x), place / "host.safetensors"), None
        elif isinstance(weights, Mapping):
            from safetensors.torch import save_file

            save_file({name: tensor.contiguous() for name, tensor in weights.items()}, place / "weights.safetensors")
            weights = place / "weights.safetensors"
        arguments += ["--host", host] if host is not None else []
        arguments += ["--weights", os.fspath(weights)] if weights is not None else []
        arguments += ["--freeze"] if freeze else []
        if normalise is not None:
            mean, deviation = (written(list(values)) for values in normalise)
            arguments += ["--set", f"task.normalise=constants(mean: {mean}, std: {deviation})"]
        elif is_given:
            arguments += ["--set", "task.normalise=none"]
        for flag, value in (("--steps", steps), ("--seed", seed), ("--threads", threads)):
            arguments += [flag, str(value)] if value is not None else []
        arguments += ["--rates", ",".join(map(str, rates))] if rates else []
        for path, field in (set or {}).items():
            arguments += ["--set", f"{path}={field if isinstance(field, str) else written(field)}"]
        arguments += ["--force"] if out is None else []
        call(arguments, progress)
    return Grown(folder, json.loads((folder / "grow.json").read_text()))


def _shape(x: numpy.ndarray | str | os.PathLike[str]) -> tuple[int, int, int]:
    """Channels, height and width of the images."""
    if isinstance(x, (str, os.PathLike)):
        raise EngineError("a module as host needs the images as an array: how large they are is not known from a path")
    height, width, *channels = numpy.asarray(x).shape[1:]
    return (channels[0] if channels else 1, height, width)


def _write_data(
    folder: Path,
    x: numpy.ndarray,
    y: numpy.ndarray | None,
    test: tuple[numpy.ndarray, numpy.ndarray] | None,
) -> str:
    if y is None:
        raise EngineError("arrays of images need labels: grow(x, y)")
    parts = {"train": (x, y)} if test is None else {"train": (x, y), "test": test}
    arrays: dict[str, Any] = {}
    for part, (images, labels) in parts.items():
        images = numpy.asarray(images)
        if images.ndim == 3:
            images = images[..., numpy.newaxis]
        if images.ndim != 4 or len(images) != len(labels):
            raise EngineError(f"images {images.shape} and labels {numpy.shape(labels)}; expected [n, height, width, channels] and [n]")
        arrays[f"x_{part}"] = images if images.dtype == numpy.uint8 else images.astype(numpy.float32)
        arrays[f"y_{part}"] = numpy.asarray(labels).astype(numpy.int64)
    file = folder / "data.npz"
    numpy.savez(file, **arrays)
    return str(file)
