"""Growing a network on arrays or files: what ``simic-engine grow`` does, with values in and out."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy

from ._program import call
from ._values import integers, number, settings, table
from .errors import EngineError
from .networks import load_network

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Grown:
    """Result of a growth: a folder of plain PyTorch, and the table beside it."""

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

    def __repr__(self) -> str:
        return f"Grown({str(self.folder)!r}, {self.report['choice']['name']!r})"

    def __str__(self) -> str:
        """The rows, with percent of the parts and 95 % intervals, notes, and the choice."""
        head = ("network", "parameters", "MMAC", "seconds", "val %", "test %", "95 %", "grown ahead")
        why = self.why[:1].upper() + self.why[1:]
        notes = [f"{row['name']}: compute {row['note']}" for row in self.table if "note" in row]
        notes += self.report["notes"]
        return "\n".join([table(head, map(_cells, self.table)), *notes, f"{why}.", f"It is in {self.folder}"])

    @property
    def network(self) -> torch.nn.Module:
        """The network, in evaluation mode. It reads what :attr:`normalise` makes of images as bytes."""
        return load_network(self.folder)

    @property
    def normalise(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """Makes what the network reads of images as bytes, ``[n, height, width, channels]``."""
        module = sys.modules[type(self.network).__module__]
        return cast("Callable[[torch.Tensor], torch.Tensor]", module.normalise)


def grow(
    x: numpy.ndarray | str | os.PathLike[str],
    y: numpy.ndarray | None = None,
    *,
    host: str | torch.nn.Module | None = None,
    weights: Mapping[str, torch.Tensor] | str | os.PathLike[str] | None = None,
    freeze: bool = False,
    budget: str = "2x",
    normalise: Sequence[Sequence[float]] | Sequence[float] | str | os.PathLike[str] | None = None,
    test: tuple[numpy.ndarray, numpy.ndarray] | None = None,
    rates: Sequence[float] = (),
    tries: int = 4,
    steps: int | None = None,
    seed: int | None = None,
    keep: str = "best",
    set: Mapping[str, object] | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Grown:
    """Grows a network on data within a budget, and compares it with what else the compute could have been spent on.

    ``x`` are images ``[n, height, width]`` or ``[n, height, width, channels]``, bytes or floats from 0 to 1, with labels
    ``y``; or the path of data that ``simic-engine data check`` reads. ``host`` is a family or a name of ``simic-engine list
    hosts``, or a module that :func:`to_host` understands, which is then the given network; ``weights`` a ``state_dict`` or a
    safetensors file to begin with, whose head may be for other classes: a new one is drawn. ``freeze`` leaves what is given as
    it is. ``normalise`` says how the given network was trained to read pixels, and is asked for where a network is given:
    ``(means, deviations)``, each with a number for every channel, or two numbers for one, of pixels from 0 to 1; ``"0..1"``:
    those as they are; ``"imagenet"``; or the path of a ``card.json`` or kept network. A network that the program has kept
    knows it, and a fresh one reads by the moments of the training part. ``test`` is a test part; without one it is drawn.
    ``keep="grown"`` writes the grown network, also where others are better. ``out`` is a folder, one of its own in the
    temporary folder if left out; where the same call was interrupted, it continues. Raises :class:`EngineError` if it is
    refused or fails.
    """
    folder = Path(out if out is not None else tempfile.mkdtemp(prefix="simic-engine-grown-"))
    with tempfile.TemporaryDirectory(prefix="simic-engine-data-") as scratch:
        # The scenario that is written beside the result names the data.
        place = folder.with_name(f"{folder.name}-data") if out is not None else Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        data = os.fspath(x) if isinstance(x, (str, os.PathLike)) else _write_data(place, x, y, test)
        arguments = ["grow", "--data", data, "--budget", budget, "--tries", str(tries), "--keep", keep, "-o", str(folder)]
        if host is not None and not isinstance(host, str):
            if weights is not None:
                raise EngineError("a module brings its own weights; leave out weights=, or name the host")
            from .hosts import to_host

            weights, host = to_host(host, _shape(x), place / "host.safetensors"), None
        elif isinstance(weights, Mapping):
            from safetensors.torch import save_file

            for name, tensor in weights.items():
                if not hasattr(tensor, "contiguous"):
                    raise EngineError(f"weights[{name!r}] is of type {type(tensor).__name__}; expected a state_dict of tensors")
            save_file({name: tensor.contiguous() for name, tensor in weights.items()}, place / "weights.safetensors")
            weights = place / "weights.safetensors"
        arguments += ["--host", host] if host is not None else []
        arguments += ["--weights", os.fspath(weights)] if weights is not None else []
        arguments += ["--freeze"] if freeze else []
        arguments += [f"--normalise={_normalisation(normalise)}"] if normalise is not None else []
        for flag, value in (("--steps", steps), ("--seed", seed), ("--threads", threads)):
            arguments += [flag, str(value)] if value is not None else []
        arguments += ["--rates", ",".join(map(str, rates))] if rates else []
        arguments += settings(set)
        call(arguments, progress)
    return Grown(folder, json.loads((folder / "grow.json").read_text()))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    test, ahead = row["test"], row.get("grown_ahead")
    return (
        row["name"],
        str(row["parameters"]),
        number(row["macs"] / 1e6, ".3f"),
        number(row["seconds"], ".1f"),
        number(row["validation"], ".2f"),
        number(test["mean"], ".2f"),
        " to ".join(number(test[end], ".1f") for end in ("low", "high")),
        "{} ({} to {})".format(*(number(ahead[part], "+.2f") for part in ("mean", "low", "high"))) if ahead else "",
    )


def _normalisation(normalise: Sequence[Sequence[float]] | Sequence[float] | str | os.PathLike[str]) -> str:
    """Text, or means and then deviations, as the program takes them."""
    if isinstance(normalise, (str, os.PathLike)):
        return os.fspath(normalise)
    try:
        moments = numpy.asarray(normalise, float)
    except (TypeError, ValueError):
        moments = numpy.empty(0)
    if moments.ndim not in (1, 2) or len(moments) != 2 or moments.size == 0:
        raise EngineError(f"normalise={normalise!r}; expected (means, deviations), each with a number for every channel, or text")
    return ",".join(map(str, moments.ravel().tolist()))


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
        images, labels = numpy.asarray(images), integers(labels, f"the labels of the {part} part")
        if images.ndim == 3:
            images = images[..., numpy.newaxis]
        if images.ndim != 4 or labels.shape != images.shape[:1]:
            raise EngineError(f"images {images.shape} and labels {labels.shape}; expected [n, height, width, channels] and [n]")
        # The program reads row-major arrays alone; of a transposed one, numpy would write the other order.
        arrays[f"x_{part}"] = numpy.ascontiguousarray(images, None if images.dtype == numpy.uint8 else numpy.float32)
        arrays[f"y_{part}"] = labels
    file = folder / "data.npz"
    numpy.savez(file, **arrays)
    return str(file)
