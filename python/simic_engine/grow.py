"""Grows and adapts networks on arrays or files: ``simic-engine grow`` and ``adapt`` with Python values."""

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

    #: A file or folder.
    Place = str | os.PathLike[str]
    #: Images and their labels.
    Labelled = tuple[numpy.ndarray, numpy.ndarray]
    #: ``(means, deviations)``, or a text or path that the program takes.
    Normalisation = Sequence[Sequence[float]] | Sequence[float] | Place
    #: Tensors by name, or a file of them.
    Weights = Mapping[str, torch.Tensor] | Place


@dataclass(frozen=True)
class _Result:
    """A folder of plain PyTorch, and the table next to it."""

    #: Holds ``network.py``, ``network.safetensors``, ``card.md``, and the table as JSON and as a page.
    folder: Path
    #: The table as JSON has it.
    report: dict[str, Any]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows: sizes, seconds, accuracies with intervals."""
        return cast("list[dict[str, Any]]", self.report["rows"])

    @property
    def network(self) -> torch.nn.Module:
        """The network, in evaluation mode. It reads the output of :attr:`normalise` for images as bytes."""
        return load_network(self.folder)

    @property
    def normalise(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """Turns images as bytes into the input of the network, ``[n, height, width, channels]``."""
        module = sys.modules[type(self.network).__module__]
        return cast("Callable[[torch.Tensor], torch.Tensor]", module.normalise)


class Grown(_Result):
    """Result of a growth, with a row of the table for each way to spend the compute. The folder also has its scenarios."""

    @property
    def why(self) -> str:
        """The chosen network and the reason, in a sentence."""
        return str(self.report["choice"]["why"])

    def __repr__(self) -> str:
        return f"Grown({str(self.folder)!r}, {self.report['choice']['name']!r})"

    def __str__(self) -> str:
        """The rows, with percent of the parts and 95 % intervals, notes, and the choice."""
        head = ("network", "parameters", "MMAC", "seconds", "val %", "test %", "95 %", "grown ahead")
        notes = [f"{row['name']}: compute {row['note']}" for row in self.table if "note" in row]
        notes += self.report["notes"]
        return "\n".join([table(head, map(_cells, self.table)), *notes, f"{_sentence(self.why)}.", f"It is in {self.folder}"])


class Adapted(_Result):
    """Result of an adaptation: the given network with one more domain, and a row for each way to read the new images."""

    @property
    def domain(self) -> str:
        """The domain's name: ``network(x, domain=name)`` reads the new images, ``network(x)`` is the given network."""
        return str(self.report["domain"])

    @property
    def why(self) -> str:
        """The written row and the reason, in a sentence."""
        return str(self.report["why"])

    def __repr__(self) -> str:
        return f"Adapted({str(self.folder)!r}, {self.domain!r}, {self.report['written']!r})"

    def __str__(self) -> str:
        """The rows, with what they add to the given network, percent of the images and 95 % intervals, and the choice."""
        head = ("what learns", "added", "cv %", "test %", "95 %", "written ahead", "old %", "rate")
        return "\n".join([table(head, map(_adapted_cells, self.table)), f"{_sentence(self.why)}.", f"It is in {self.folder}"])


def grow(
    x: numpy.ndarray | Place,
    y: numpy.ndarray | None = None,
    *,
    host: str | torch.nn.Module | None = None,
    weights: Weights | None = None,
    budget: str = "2x",
    normalise: Normalisation | None = None,
    test: Labelled | None = None,
    rates: Sequence[float] = (),
    tries: int = 4,
    steps: int | None = None,
    seed: int | None = None,
    keep: str = "best",
    set: Mapping[str, object] | None = None,
    out: Place | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Grown:
    """Grows a network on data within a budget, and compares it with other uses of the compute.

    ``x`` are images ``[n, height, width]`` or ``[n, height, width, channels]``, or as PyTorch has them ``[n, channels,
    height, width]`` with 1 or 3 channels, bytes or floats from 0 to 1, with labels ``y``. ``x`` may also be the path of data
    that ``simic-engine data check`` reads. ``host`` is a family or a name of ``simic-engine list hosts``, or a module that
    :func:`to_host` understands, which is then the given network. ``weights`` are a ``state_dict`` or a safetensors file to
    begin with. If its head is for other classes, a new one is drawn. ``normalise`` says how the given network was trained to
    read pixels: ``(means, deviations)`` of pixels from 0 to 1, each with a number for every channel, or two numbers for one;
    ``"0..1"`` for pixels as they are; ``"imagenet"``; or the path of a ``card.json`` or kept network. A given network needs
    it, except one that the program has kept. A fresh network reads by the moments of the training part. ``test`` is a test
    part; without one it is drawn. ``keep="grown"`` writes the grown network even if others are better. ``out`` is a folder;
    if left out, one in the temporary folder. A call that was interrupted continues if you repeat it. Raises
    :class:`EngineError` if it is refused or fails.
    """
    given: torch.nn.Module | Weights | None = weights
    if host is not None and not isinstance(host, str):
        if weights is not None:
            raise EngineError("a module has its own weights; leave out weights=, or name the host")
        given, host = host, None
    own = {"--budget": budget, "--tries": tries, "--keep": keep, "--steps": steps}
    shared = {"--host": host, "--seed": seed, "--threads": threads}
    return Grown(*_play("grow", (x, y, test), given, own | shared, normalise, rates, set, out, progress))


def adapt(
    network: torch.nn.Module | Weights,
    x: numpy.ndarray | Place,
    y: numpy.ndarray | None = None,
    *,
    host: str | None = None,
    normalise: Normalisation | None = None,
    domain: str | None = None,
    budget: str = "0.8x",
    old: Labelled | Place | None = None,
    rates: Sequence[float] = (),
    test: Labelled | None = None,
    seed: int | None = None,
    set: Mapping[str, object] | None = None,
    out: Place | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Adapted:
    """Adapts a trained network to other images, keeps the given one inside, bit for bit, and compares it with fine-tuned copies.

    ``network`` is a module that :func:`to_host` understands, a ``state_dict`` or safetensors file with weights of ``host``, a
    kept network, or the folder of an earlier result, which gets one domain more. ``domain`` is the name of the new one, and
    ``budget`` the most that it may add, in sizes of the given network, ``"0.3x"``. ``old`` are data that the network was
    trained on: copies are also tuned with them, and the table says how rows read them. Cross-validation over all images
    chooses learning rate and size. ``rates`` are the learning rates to try. Without ``test`` there is no test part. Everything
    else is as in :func:`grow`.
    """
    own = {"--budget": budget, "--domain": domain, "--old": old}
    shared = {"--host": host, "--seed": seed, "--threads": threads}
    return Adapted(*_play("adapt", (x, y, test), network, own | shared, normalise, rates, set, out, progress))


def _play(
    command: str,
    data: tuple[numpy.ndarray | Place, numpy.ndarray | None, Labelled | None],
    given: torch.nn.Module | Weights | None,
    flags: Mapping[str, Any],
    normalise: Normalisation | None,
    rates: Sequence[float],
    set: Mapping[str, object] | None,
    out: Place | None,
    progress: bool,
) -> tuple[Path, dict[str, Any]]:
    """Runs ``command``. Returns its folder and the table in it."""
    folder = Path(out if out is not None else tempfile.mkdtemp(prefix=f"simic-engine-{command}-"))
    with tempfile.TemporaryDirectory(prefix="simic-engine-data-") as scratch:
        # The scenario that is written next to the result names the data.
        place = folder.with_name(f"{folder.name}-data") if out is not None else Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        arguments = [command, "--data", _data(place / "data.npz", *data), "-o", str(folder)]
        arguments += ["--weights", _given(place, given, data[0])] if given is not None else []
        for flag, value in flags.items():
            # Arrays of old data.
            text = _data(place / "old.npz", value[0], value[1], None) if isinstance(value, tuple) else value
            arguments += [flag, str(text)] if text is not None else []
        arguments += [f"--normalise={_normalisation(normalise)}"] if normalise is not None else []
        arguments += ["--rates", ",".join(map(str, rates))] if rates else []
        arguments += settings(set)
        call(arguments, progress)
    return folder, json.loads((folder / f"{command}.json").read_text())


def _given(place: Path, network: torch.nn.Module | Weights, x: numpy.ndarray | Place) -> str:
    """The path of a given network, which is written to ``place`` if it isn't a file."""
    if isinstance(network, (str, os.PathLike)):
        return os.fspath(network)
    if not isinstance(network, Mapping):
        from .hosts import to_host

        try:
            return str(to_host(network, _shape(x), place / "host.safetensors"))
        except ValueError as error:
            raise EngineError(str(error)) from error
    from safetensors.torch import save_file

    for name, tensor in network.items():
        if not hasattr(tensor, "contiguous"):
            raise EngineError(f"weights[{name!r}] is of type {type(tensor).__name__}; expected a state_dict of tensors")
    file = place / "weights.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in network.items()}, file)
    return str(file)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        str(row["parameters"]),
        number(row["macs"] / 1e6, ".3f"),
        number(row["seconds"], ".1f"),
        number(row["validation"], ".2f"),
        number(row["test"]["mean"], ".2f"),
        _interval(row["test"]),
        _ahead(row.get("grown_ahead"), "+.2f"),
    )


def _adapted_cells(row: dict[str, Any]) -> tuple[str, ...]:
    test, old = row.get("test"), row.get("old")
    return (
        row["name"],
        f"{number(row['added_share'], '.2f')}x",
        number(row["cross_validated"]["mean"], ".1f"),
        number(test and test["mean"], ".1f"),
        _interval(test or row["cross_validated"]),
        _ahead(row.get("written_ahead"), "+.1f"),
        number(old and old["mean"], ".1f"),
        str(row["rate"]),
    )


def _interval(bounded: Mapping[str, Any]) -> str:
    return " to ".join(number(bounded[end], ".1f") for end in ("low", "high"))


def _ahead(ahead: Mapping[str, Any] | None, form: str) -> str:
    return "{} ({} to {})".format(*(number(ahead[part], form) for part in ("mean", "low", "high"))) if ahead else ""


def _normalisation(normalise: Normalisation) -> str:
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


def _shape(x: numpy.ndarray | Place) -> tuple[int, int, int]:
    """Channels, height and width of the images."""
    if isinstance(x, (str, os.PathLike)):
        raise EngineError("a module needs the images as an array, because a path doesn't say how large they are")
    height, width, *channels = _channels_last(x).shape[1:]
    return (channels[0] if channels else 1, height, width)


def _channels_last(x: numpy.ndarray) -> numpy.ndarray:
    """Images as ``[n, height, width, channels]``, also of PyTorch's ``[n, channels, height, width]``."""
    images = numpy.asarray(x)
    channels, *sides = images.shape[1:] if images.ndim == 4 else (0,)
    return images.transpose(0, 2, 3, 1) if channels in (1, 3) and sides[0] == sides[1] > 3 else images


def _data(file: Path, x: numpy.ndarray | Place, y: numpy.ndarray | None, test: Labelled | None) -> str:
    """The path of data; arrays are written to ``file``."""
    if isinstance(x, (str, os.PathLike)):
        return os.fspath(x)
    if y is None:
        raise EngineError("arrays of images need labels, y")
    parts = {"train": (x, y)} if test is None else {"train": (x, y), "test": test}
    arrays: dict[str, Any] = {}
    for part, (images, labels) in parts.items():
        images, labels = _channels_last(images), integers(labels, f"the labels of the {part} part")
        if images.ndim == 3:
            images = images[..., numpy.newaxis]
        if images.ndim != 4 or labels.shape != images.shape[:1]:
            raise EngineError(f"images {images.shape} and labels {labels.shape}; expected [n, height, width, channels] and [n]")
        # The program reads only row-major arrays, and numpy would write a transposed one in the other order.
        arrays[f"x_{part}"] = numpy.ascontiguousarray(images, None if images.dtype == numpy.uint8 else numpy.float32)
        arrays[f"y_{part}"] = labels
    numpy.savez(file, **arrays)
    return str(file)
