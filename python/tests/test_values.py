"""Values that a caller hands in: what is an integer, what a scenario has for it, and arrays in any order of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simic_engine as se
from simic_engine._values import integers, written
from simic_engine.grow import _data

WHOLE = [[0, 2, 1], [np.int8(0), 2, np.uint16(1)], np.array([0, 2, 1], object), np.array([0, 2, 1], "u8"), np.array([0, 2, 1], ">i2")]


@pytest.mark.parametrize("values", WHOLE)
def test_integers_of_python_and_of_numpy_are_taken(values: Any) -> None:
    taken = integers(values, "labels")
    assert taken.dtype == np.dtype("<i8") and taken.tolist() == [0, 2, 1]


REFUSED = [
    ([0, 0.9], "float"),
    ([0, 1.0], "float"),
    ([0, True], "bool"),
    ([0, np.True_], "bool"),
    ([0, None], "NoneType"),
    ([[0, 1], [1]], "list"),
    (["0", "1"], "str"),
    (np.array([0.0, 0.9]), "float64"),
    (np.array([False, True]), "bool"),
    (np.array([1, "x"], object), "str"),
    (np.array([0, 1], "m8[s]"), "timedelta64"),
]


@pytest.mark.parametrize(("values", "kind"), REFUSED)
def test_a_value_that_is_not_an_integer_is_refused_with_its_type(values: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^labels were given as {kind}.*, but must be integers; convert them"):
        integers(values, "labels")


def test_an_integer_that_a_cast_would_make_negative_is_refused() -> None:
    with pytest.raises(ValueError, match="labels were given as uint64, but some are above 9223372036854775807"):
        integers(np.array([0, 2**63], np.uint64), "labels")


def test_labels_are_not_cast() -> None:
    images, labels = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])
    with pytest.raises(TypeError, match="the labels of the train part were given as float64"):
        se.grow(images, labels + 0.9)
    with pytest.raises(TypeError, match="the labels of the test part were given as bool"):
        se.grow(images, labels, test=(images, labels == 1))
    with pytest.raises(se.EngineError, match=r"labels \(4, 1\); expected .* and \[n\]"):
        se.grow(images, labels[:, np.newaxis])


def test_a_scenario_has_values_of_numpy_as_those_of_python() -> None:
    fields = {"rounds": np.int64(3), "rate": np.float64(0.5), "on": np.bool_(True), "std": np.array([0.25, 0.5])}
    assert written(fields) == "(rounds: 3, rate: 0.5, on: true, std: [0.25, 0.5])"


@pytest.mark.parametrize("kind", ["u1", "f4", "f8"])
def test_the_order_of_an_array_in_memory_does_not_matter(kind: str, tmp_path: Path) -> None:
    images, labels = np.arange(6 * 4 * 4 * 3).reshape(6, 4, 4, 3).astype(kind), np.arange(6)
    channels_first = images.transpose(0, 3, 1, 2).copy()
    orders = {
        "fortran": (np.asfortranarray(images), labels),
        "transposed": (channels_first.transpose(0, 2, 3, 1), labels),
        "strided": (np.repeat(images, 2, axis=0)[::2], np.repeat(labels, 2)[::2]),
    }
    for name, (ordered, of) in orders.items():
        assert not ordered.flags.c_contiguous
        (tmp_path / name).mkdir()
        with np.load(_data(tmp_path / name / "data.npz", ordered, of, None)) as data:
            assert data["x_train"].flags.c_contiguous and (data["x_train"] == images).all()
            assert (data["y_train"] == labels).all()


def test_the_engine_grows_on_an_array_in_fortran_order(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 2, 120)
    images = draw.integers(0, 120, (120, 8, 8), dtype=np.uint8)
    images[labels == 1, :4] += 100
    grown = [
        se.grow(array, labels, steps=3, tries=1, seed=np.int64(3), threads=1, out=tmp_path / name)
        for name, array in (("rows", images), ("columns", np.asfortranarray(images)))
    ]
    first, second = ([(row["name"], row["validation"], row["test"]) for row in one.table] for one in grown)
    assert first == second


REPORT: dict[str, Any] = {
    "choice": {"way": "grown", "name": "grown", "why": "growth is ahead of trained"},
    "rows": [
        {
            "name": "trained",
            "parameters": 1600,
            "macs": 11_568,
            "seconds": 0.44,
            "validation": None,
            "test": {"mean": 89.25, "low": 83.5, "high": 95.14},
            "grown_ahead": {"mean": 4.08, "low": -1.52, "high": 9.681},
        },
        {
            "name": "grown",
            "parameters": 904,
            "macs": 1_200_300,
            "seconds": 11.2,
            "validation": 84.848,
            "test": {"mean": 93.33, "low": 87.0, "high": 98.0},
        },
    ],
    "notes": ["no row `widened`: the network is given"],
}


def test_what_was_grown_prints_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print(se.Grown(Path("here"), REPORT))
    assert capsys.readouterr().out == (
        "network  parameters   MMAC  seconds  val %  test %          95 %             grown ahead\n"
        "trained        1600  0.012      0.4      -   89.25  83.5 to 95.1  +4.08 (-1.52 to +9.68)\n"
        "grown           904  1.200     11.2  84.85   93.33  87.0 to 98.0\n"
        "no row `widened`: the network is given\n"
        "Growth is ahead of trained.\n"
        "It is in here\n"
    )
    assert repr(se.Grown(Path("here"), REPORT)) == "Grown('here', 'grown')"
