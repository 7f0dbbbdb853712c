"""Networks of PyTorch as hosts: the engine reads what PyTorch reads, to the sample, and names what it cannot read."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))

from simic_engine.hosts import to_host  # noqa: E402

PROGRAM = os.environ.get("SIMIC_ENGINE_PROGRAM", str(ROOT / "target" / "debug" / "simic-engine"))


def cnn() -> nn.Module:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(1, 6), *block(6, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


class Basic(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        shape_changes = stride != 1 or inputs != outputs
        conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.downsample = nn.Sequential(conv, nn.BatchNorm2d(outputs)) if shape_changes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class SmallResnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Basic(4, 4, 1), Basic(4, 4, 1))
        self.layer2 = nn.Sequential(Basic(4, 8, 2))
        self.fc = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


def images() -> tuple[np.ndarray, np.ndarray]:
    """Noisy patches, in one of four corners."""
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 4, 400)
    pixels = draw.integers(0, 200, (400, 8, 8, 1))
    for image, label in zip(pixels, labels):
        image[4 * (label // 2) :, 4 * (label % 2) :][:4, :4] += 35
    return pixels.astype(np.uint8), labels.astype(np.int64)


def inputs(pixels: np.ndarray) -> torch.Tensor:
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - 0.4) / 0.25


def trained(module: nn.Module, pixels: np.ndarray, labels: np.ndarray) -> nn.Module:
    torch.manual_seed(1)
    torch.set_num_threads(1)  # the same weights on every machine
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    for _ in range(12):
        for part in torch.randperm(len(labels)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(inputs(pixels[part])), torch.from_numpy(labels[part])).backward()
            optimizer.step()
    return module.eval()


def kept(path: Path) -> dict:
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["simic_engine"].split(" ", 1)[1])


def engine(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    library = str(Path(torch.__file__).parent / "lib")
    return subprocess.run(
        [PROGRAM, *arguments], cwd=folder, env={**os.environ, "LD_LIBRARY_PATH": library}, capture_output=True, text=True
    )


class Averaged(nn.Module):
    """Ends in a mean by hand, with dropout and layers that do nothing in between."""

    def __init__(self) -> None:
        super().__init__()
        layers = list(cnn().children())[:-3]
        self.block = nn.Sequential(*layers[:4], nn.Dropout2d(0.05), *layers[4:])
        self.drop, self.nothing, self.fc = nn.Dropout(0.05), nn.Identity(), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.nothing(self.drop(self.block(x).mean((2, 3)))))


@pytest.mark.parametrize("make", [cnn, SmallResnet, Averaged])
def test_the_engine_reads_what_pytorch_reads(make, tmp_path: Path) -> None:
    pixels, labels = images()
    torch.manual_seed(3)
    module = trained(make(), pixels, labels)
    np.save(tmp_path / "x.npy", pixels)
    np.save(tmp_path / "y.npy", labels)
    host = to_host(module, (1, 8, 8), tmp_path / "host.safetensors")
    slots = [slot for slot, _ in kept(host)["graph"]["slots"]]
    (tmp_path / "s.ron").write_text(f"""(
        task: preset("digits_minimal", (
            data: npy(images: "x.npy", labels: "y.npy", layout: nhwc, scale: 255.0), classes: 4,
            normalise: constants(mean: [0.4], std: [0.25]), batch_size: 16, split: (seed: 1, val_permille: 400, test_permille: 200),
            host: grown("host.safetensors"), freeze: ["all"], slots: {json.dumps(slots)},
        )),
        run: (rounds: 1, n_envs: 1, max_steps: 1), policy: (controller: "wait"),
    )""")

    run = engine("run", "s.ron", "--out", "runs", folder=tmp_path)

    assert run.returncode == 0, run.stderr
    (file,) = tmp_path.glob("runs/*/networks/*.safetensors")
    described = kept(file)
    for name, tensor in load_file(host).items():
        assert torch.equal(load_file(file)[name], tensor), name
    mine = kept(host)["measures"]
    for size in ("parameters", "macs"):
        assert described["measures"][size] == mine[size], size
    with torch.no_grad():
        logits = module(inputs(pixels))
    best = logits.topk(2).values
    # The order of sums is each library's own: where two classes are equal up to rounding, either may be the first.
    sure = (best[:, 0] - best[:, 1] > 1e-4).numpy()
    hits = logits.argmax(1).numpy() == labels
    for part in ("validation", "test"):
        places = described["data"][part]
        measured = described["measures"][part]
        counted = round(measured["accuracy"] / 100 * measured["samples"])
        assert (hits & sure)[places].sum() <= counted <= (hits | ~sure)[places].sum(), part
        assert sure[places].mean() > 0.9, part
    assert 40 < described["measures"]["validation"]["accuracy"] < 100


class Tripled(Basic):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(torch.add(out, x, alpha=3.0))


def ending(*end: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), *end)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU()), "layer 0 (Conv2d) .* a BatchNorm2d must follow it, not 1 (ReLU)"),
        (nn.Sequential(nn.Conv2d(1, 4, 5, padding=1), nn.BatchNorm2d(4), nn.ReLU()), "layer 0 .* zeros of half its width"),
        (nn.Sequential(nn.Tanh()), "layer 0 (Tanh) .* a host is a line of"),
        (nn.Sequential(nn.Dropout(0.5)), "layer output .* a host is a line of"),
        (nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4, eps=1e-3), nn.ReLU()), "layer 1 .* eps 1e-5"),
        (nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()), "layer 0 .* it reads 3 channels, but gets 1"),
        (ending(Tripled(4, 4, 1)), "layer add (call_function) .* its alpha is not 1"),
        (ending(nn.AdaptiveAvgPool2d(1), nn.Flatten(0), nn.Linear(4, 2)), "layer 4 (Flatten) .* dimensions (0, -1)"),
        (ending(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(9, 2)), "layer 5 .* reads 9 features, but gets 4"),
        (ending(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2), nn.Softmax(1)), "layer 5 .* belongs to the loss"),
    ],
)
def test_what_a_host_cannot_have_is_named(module: nn.Module, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        to_host(module, (1, 8, 8), tmp_path / "host.safetensors")
    assert not list(tmp_path.iterdir())


def test_torchvisions_resnet18_is_read_whole(tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision")
    host = to_host(torchvision.models.resnet18(weights=None), (3, 224, 224), tmp_path / "host.safetensors")
    described = kept(host)
    assert described["measures"]["parameters"] == 11_689_512
    assert described["measures"]["macs"] == 1_814_073_344
    assert [slot for slot, _ in described["graph"]["slots"]][-1] == "r4c1"
