"""Exported networks in plain PyTorch: the same logits as in the engine.

SIMIC_ENGINE_EXPORTED names the folder that `cargo test --test engine exported::` has filled with
SIMIC_ENGINE_TEST_EXPORT=FOLDER; SIMIC_ENGINE_PROGRAM the program. With SIMIC_ENGINE_COMMIT_EXPORTED=FOLDER the logits of
the networks that have a folder there are written into it, for the engine's own tests.
"""

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOLERANCE = 1e-5


def exported():
    folder = os.environ.get("SIMIC_ENGINE_EXPORTED")
    return sorted(path.parent for path in Path(folder).glob("*/network.py")) if folder else []


def module_in(folder):
    spec = importlib.util.spec_from_file_location(f"network_{folder.name.replace('-', '_')}", folder / "network.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def logits_of(module, folder, samples):
    with torch.inference_mode():
        return module.load(folder)(module.normalise(samples))


def samples_in(engine):
    samples = engine["samples"]
    return samples.to(torch.uint8) if samples.dim() == 4 else samples


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        kind = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        content = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.mark.parametrize("folder", exported(), ids=lambda folder: folder.name)
def test_logits_are_those_of_the_engine(folder, record_property):
    module = module_in(folder)
    engine = module.read_safetensors(folder / "engine.safetensors")
    samples, expected = samples_in(engine), engine["logits"]

    logits = logits_of(module, folder, samples)

    largest = expected.abs().max().item()
    difference = (logits - expected).abs().max().item() / largest
    record_property("difference", difference)
    print(f"\n{folder.name} {difference:.2e}")
    assert torch.allclose(logits, expected, rtol=TOLERANCE, atol=TOLERANCE * largest), difference
    first, second = expected.topk(2, -1).values.unbind(-1)
    is_clear = first - second > TOLERANCE * largest
    assert torch.equal(logits.argmax(-1)[is_clear], expected.argmax(-1)[is_clear])

    committed = Path(os.environ.get("SIMIC_ENGINE_COMMIT_EXPORTED", os.devnull)) / folder.name
    if committed.is_dir():
        few = {"samples": samples[:4].long(), "logits": logits[:4]}
        write_safetensors(committed / "pytorch.safetensors", few)
        for name in ("network.py", "kept.safetensors"):
            shutil.copy(folder / name, committed / name)


def test_every_tensor_is_taken_and_none_is_new():
    for folder in exported():
        module = module_in(folder)
        saved = module.read_safetensors(folder / "network.safetensors")
        state = module.Network().state_dict()
        assert {name: tensor.shape for name, tensor in state.items()} == {
            name: tensor.shape for name, tensor in saved.items()
        }


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    folder = exported()[0]
    module = module_in(folder)
    whole = (folder / "network.safetensors").read_bytes()
    for length in (0, 4, 100, len(whole) - 1):
        (tmp_path / "network.safetensors").write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is cut off"):
            module.load(tmp_path)


def test_a_photograph_is_upright_and_its_central_square(tmp_path):
    """Two sizes, which the engine therefore scales to 32: its moments of the pixels are those of `photograph`."""
    images = pytest.importorskip("PIL.Image", reason="photographs are images of Pillow")
    network = module_in(Path(__file__).parents[2] / "tests" / "exported" / "cnn-small-batch-all")
    upright = torch.randint(0, 256, (8, 11), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    exif = images.Exif()
    exif[0x112] = 6  # It is looked at a quarter to the right of how it is stored.
    for name, scale in (("a", 1), ("b", 7)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        shown = images.frombytes("L", (11, 8), bytes(upright.flatten().tolist())).resize((11 * scale, 8 * scale), 0)
        shown.transpose(images.Transpose.ROTATE_90).save(tmp_path / "photos" / name / "0.png", exif=exif)
    opened = [images.open(tmp_path / "photos" / name / "0.png") for name in "ab"]

    assert torch.equal(network.photograph(opened[0])[..., 0], upright[:, 1:9])

    network.SIDE = 32
    pixels = torch.stack([network.photograph(image) for image in opened]) / 255
    check = [os.environ["SIMIC_ENGINE_PROGRAM"], "--json", "data", "check", "photos"]
    survey = json.loads(subprocess.run(check, cwd=tmp_path, capture_output=True, text=True).stdout)
    assert survey["width"] == 32
    measured = [survey["parts"][0][moment][0] for moment in ("mean", "std")]
    assert [pixels.mean().item(), pixels.std(correction=0).item()] == pytest.approx(measured, abs=1e-3)


def write_npy(path, tensor, kind):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(tensor.shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    content = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


def test_the_reported_accuracy_is_measured_again(tmp_path):
    """A network is grown on arrays, exported, and measured by its own file on the same arrays."""
    program = os.environ["SIMIC_ENGINE_PROGRAM"]
    torch.manual_seed(5)
    labels = torch.arange(600) % 4
    images = torch.randint(0, 90, (600, 8, 8, 1), dtype=torch.uint8)
    for index, label in enumerate(labels.tolist()):
        row, column = 4 * (label // 2), 4 * (label % 2)
        images[index, row : row + 4, column : column + 4] += 40
    write_npy(tmp_path / "images.npy", images, "|u1")
    write_npy(tmp_path / "labels.npy", labels, "<i8")
    arrays = ["images.npy", "labels.npy"]
    init = subprocess.run([program, "init", *arrays, "--layout", "nhwc"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "arrays.ron").write_bytes(init.stdout)
    settings = ["run.rounds=1", "run.n_envs=2", "run.max_steps=12"]
    sets = [word for setting in settings for word in ("--set", setting)]
    run = [program, "run", "arrays.ron", *sets, "--out", "runs", "--progress", "none"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([program, "export", "latest", "--out", "runs", "-o", "grown"], cwd=tmp_path, check=True)

    command = [sys.executable, "grown/network.py", *arrays]
    measured = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert measured.returncode == 0, measured.stdout + measured.stderr
    card = json.loads((tmp_path / "grown" / "card.json").read_text())["measures"]["test"]
    assert measured.stdout.startswith(f"accuracy {card['accuracy']:.2f} %"), measured.stdout
    write_npy(tmp_path / "labels.npy", (labels + 1) % 4, "<i8")
    wrong = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 1 and "these are not the numbers of the card" in wrong.stderr
