"""``grow`` on arrays: values in, a network of PyTorch and a table out."""

import sys

import numpy
import pytest
import torch
from torch import nn

import simic_engine as se


def images(count, seed):
    """Bright and dark halves: three classes that a small network reads."""
    random = numpy.random.default_rng(seed)
    labels = numpy.arange(count) % 3
    pixels = random.integers(0, 120, (count, 8, 8), dtype=numpy.uint8)
    pixels[labels == 0, :4] += 100
    pixels[labels == 1, :, :4] += 100
    return pixels, labels


def accuracy(network, x, y):
    source = sys.modules[type(network).__module__]
    with torch.no_grad():
        guesses = network(source.normalise(torch.from_numpy(x[..., None]))).argmax(1)
    return 100 * float((guesses.numpy() == y).mean())


HOST = "cnn((in_channels: 1, base_channels: 2, n_blocks: 2, pool_layers: 1, input_hw: 8))"
QUICK = {"steps": 8, "tries": 1, "threads": 1, "seed": 3, "set": {"task.batch_size": 16}}


def test_a_network_grown_on_arrays_has_the_accuracy_of_its_row():
    x, y = images(240, 1)
    test = images(90, 2)

    grown = se.grow(x, y, host=HOST, budget="3x", test=test, **QUICK)

    assert {row["way"] for row in grown.table} == {"trained", "widened", "from_scratch", "grown"}
    chosen = next(row for row in grown.table if row["way"] == grown.report["choice"]["way"])
    assert accuracy(grown.network, *test) == pytest.approx(chosen["test"]["mean"])
    assert grown.why and (grown.folder / "card.md").read_text().count(grown.why) == 1


def module():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
    ).eval()


def test_what_does_not_fit_together_is_said():
    x, y = images(30, 1)
    with pytest.raises(se.EngineError, match="need labels"):
        se.grow(x)
    with pytest.raises(se.EngineError, match="has its own weights"):
        se.grow(x, y, host=module(), weights=module().state_dict())
    with pytest.raises(se.EngineError, match="needs --normalise"):
        se.grow(x, y, host=module())
    with pytest.raises(se.EngineError, match="'epoch'. is of type int"):
        se.grow(x, y, weights={**module().state_dict(), "epoch": 3})
    for normalise in (((0.5, 0.25), (0.5, 0.25), (0.5, 0.25)), ((0.5, 0.5), (0.25,)), 0.5, ((), ())):
        with pytest.raises(se.EngineError, match="expected .means, deviations."):
            se.grow(x, y, host=module(), normalise=normalise)
    with pytest.raises(se.EngineError, match="isn.t a budget"):
        se.grow(x, y, budget="lots")
