"""A network that simic-engine has grown: 0 parameters, 0 of them in 8 seeds.

`load()` returns it with its weights, `normalise(samples)` turns samples as files hold them into what it reads.
The network reads images of 8x8 pixels. `photograph(image)` of network.py, which needs Pillow, brings an image of
PIL to that as the engine does with files: upright, its central square, scaled.
`python network.py` measures its accuracy again; card.md says what is known of it. It needs torch alone.
"""

import ast
import json
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


# Names of classes in the order of the logits.
CLASSES = []
# Of each channel: pixels are read as pixel * scale + offset.
SCALE = [0.01]
OFFSET = [-0.5]
# Height and width, in pixels.
SIDE = 8


def group_norm(channels):
    """The most groups, a power of two up to 32, that leave 16 channels or more in each."""
    fit = (groups for groups in (32, 16, 8, 4, 2) if channels % groups == 0 and channels // groups >= 16)
    return nn.GroupNorm(next(fit, 1), channels)


def norm_of(kind, channels):
    return nn.BatchNorm2d(channels) if kind == "batch" else group_norm(channels)


class Unit(nn.Module):
    """A convolution that keeps height and width, but for its stride, and a norm."""

    def __init__(self, inputs, outputs, kernel, norm, stride=1, bias=False):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias)
        self.norm = norm_of(norm, outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class Conv(Unit):
    """Convolution, norm and ReLU."""

    def forward(self, x):
        return F.relu(super().forward(x))


class Head(nn.Linear):
    """Mean over positions, then logits."""

    def forward(self, x):
        return super().forward(x.mean((2, 3)))


class Gate(nn.Module):
    """One value in (0, 1) an image or a token."""

    def __init__(self, channels):
        super().__init__()
        hidden = max(channels // 4, 8)
        self.hidden = nn.Linear(channels, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, x):
        is_image = x.dim() == 4
        gate = self.output(F.relu(self.hidden(x.mean((2, 3)) if is_image else x))).sigmoid()
        return gate[:, :, None, None] if is_image else gate


class Seed(nn.Module):
    """A module that grew: its `delta` enters the features by an operator, with an amplitude."""

    def __init__(self, channels, operator, amplitude):
        super().__init__()
        self.operator, self.amplitude = operator, amplitude
        self.gate = Gate(channels) if operator == "gate" else None

    def forward(self, x):
        delta = self.delta(x)
        if self.operator == "add":
            return x + self.amplitude * delta
        if self.operator == "multiply":
            return x + x * (self.amplitude * delta.tanh())
        return x + delta * (self.amplitude * self.gate(x))


class Nothing(Seed):
    def forward(self, x):
        return x


class Stack(Seed):
    """Layers in order."""

    def __init__(self, *layers, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.depth = len(layers)
        for position, layer in enumerate(layers):
            self.add_module(str(position), layer)

    def delta(self, x):
        for position in range(self.depth):
            x = self.get_submodule(str(position))(x)
        return x


class Norm(Seed):
    """tanh(strength) times what a norm changes."""

    def __init__(self, norm, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.strength = nn.Parameter(torch.zeros(1))
        self.norm = norm

    def delta(self, x):
        return (self.norm(x) - x) * self.strength.tanh()


class SqueezeExcite(Seed):
    """Channel attention (Hu et al. 2018, arXiv:1709.01507)."""

    def __init__(self, hidden, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.squeeze = nn.Linear(channels, hidden, bias=False)
        self.excite = nn.Linear(hidden, channels)

    def delta(self, x):
        factor = self.excite(F.silu(self.squeeze(x.mean((2, 3))))).tanh()
        return x * factor[:, :, None, None]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.block0 = Conv(1, 3, 3, "batch")
        # grew in slot r0c0: noop, in an earlier growth
        self.r0c0 = Nothing(channels=3, operator="add", amplitude=0.7)
        # grew in slot r0c0: norm, in an earlier growth
        self.r0c0_2 = Norm(group_norm(3), channels=3, operator="add", amplitude=0.7)
        # grew in slot r0c0: conv_small, in an earlier growth
        self.r0c0_3 = Stack(
            nn.Conv2d(3, 3, 1, padding=0, bias=False),
            nn.SiLU(),
            group_norm(3),
            channels=3, operator="add", amplitude=0.7,
        )
        # grew in slot r1c0: attention, in an earlier growth
        self.r1c0 = SqueezeExcite(1, channels=3, operator="gate", amplitude=0.7)
        # grew in slot r1c0: bottleneck, in an earlier growth
        self.r1c0_2 = Stack(
            nn.Conv2d(3, 8, 1, padding=0, bias=False),
            nn.SiLU(),
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
            nn.SiLU(),
            nn.Conv2d(8, 3, 1, padding=0, bias=False),
            group_norm(3),
            channels=3, operator="gate", amplitude=0.7,
        )
        self.block1 = Conv(3, 6, 3, "batch")
        # grew in slot r0c1: conv_light, in an earlier growth
        self.r0c1 = Stack(
            nn.Conv2d(6, 6, 3, padding=1, bias=False),
            nn.SiLU(),
            group_norm(6),
            channels=6, operator="multiply", amplitude=0.7,
        )
        # grew in slot r0c1: depthwise, in an earlier growth
        self.r0c1_2 = Stack(
            nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False),
            nn.Conv2d(6, 6, 1, padding=0, bias=False),
            nn.SiLU(),
            group_norm(6),
            channels=6, operator="multiply", amplitude=0.7,
        )
        # grew in slot r0c1: conv_heavy, in an earlier growth
        self.r0c1_3 = Stack(
            nn.Conv2d(6, 6, 3, padding=1, bias=False),
            group_norm(6),
            nn.SiLU(),
            nn.Conv2d(6, 6, 3, padding=1, bias=False),
            nn.SiLU(),
            group_norm(6),
            channels=6, operator="multiply", amplitude=0.7,
        )
        self.head = Head(6, 10)

    def forward(self, x):
        x = self.block0(x)
        x = self.r0c0(x)
        x = self.r0c0_2(x)
        x = self.r0c0_3(x)
        x = F.max_pool2d(x, 2)
        x = self.r1c0(x)
        x = self.r1c0_2(x)
        x = self.block1(x)
        x = self.r0c1(x)
        x = self.r0c1_2(x)
        x = self.r0c1_3(x)
        return self.head(x)


def photograph(image):
    """An image of PIL, u8 [side, side, channels], as the engine reads files: upright, its central square, scaled."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image).convert("L" if len(SCALE) == 1 else "RGB")
    left, top = ((length - min(image.size)) // 2 for length in image.size)
    image = image.crop((left, top, left + min(image.size), top + min(image.size))).resize((SIDE, SIDE), Image.BILINEAR)
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(SIDE, SIDE, len(SCALE))


def normalise(images):
    """u8 [n, height, width, channels], as files hold them, to f32 [n, channels, height, width], as the network reads them."""
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] != len(SCALE):
        found = f"{images.dtype} {list(images.shape)}"
        raise ValueError(f"images are given as torch.uint8 [n, height, width, {len(SCALE)}], not as {found}")
    scale, offset = (torch.tensor(values, device=images.device) for values in (SCALE, OFFSET))
    return (images.float() * scale + offset).permute(0, 3, 1, 2)


def read_part(files):
    if len(files) != 2:
        sys.exit("usage: python network.py IMAGES.npy LABELS.npy, u8 [n, height, width, channels] and integers [n]")
    return read_npy(files[0]), read_npy(files[1]).long()


def read_safetensors(path):
    """The tensors of a safetensors file by name."""
    kinds = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}
    kinds |= {"F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
    data = bytearray(Path(path).read_bytes())
    (size,) = struct.unpack_from("<Q", data) if len(data) >= 8 else (len(data),)
    if size > len(data) - 8:
        raise ValueError(f"{path} is cut off, or no safetensors file: its header would have {size} bytes")
    tensors, first_byte = {}, 8 + size
    for name, entry in json.loads(data[8:first_byte]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            if not 0 <= first <= last <= len(data) - first_byte:
                raise ValueError(f"{path} is cut off: it has not all of {name}")
            if entry["dtype"] not in kinds:
                raise ValueError(f"{path}: {name} is {entry['dtype']}; expected {', '.join(kinds)}")
            flat = torch.frombuffer(data[first_byte + first : first_byte + last], dtype=kinds[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def read_npy(path):
    """The integers of a NumPy file."""
    kinds = {"u1": torch.uint8, "i1": torch.int8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64}
    data = bytearray(Path(path).read_bytes())
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} isn't an NPY file")
    wide = data[6] > 1
    (size,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    begin = 12 if wide else 10
    header = ast.literal_eval(data[begin : begin + size].decode("latin1"))
    order, kind = header["descr"][0], header["descr"][1:]
    if kind not in kinds or order == ">" or header["fortran_order"]:
        raise ValueError(f"{path} holds {header}; expected little-endian integers in rows")
    return torch.frombuffer(data[begin + size :], dtype=kinds[kind]).reshape(header["shape"])


def evaluate(network, samples, targets):
    """How many predictions are right, of how many, and how many are too close to call."""
    right = close = 0
    with torch.inference_mode():
        for part, wanted in zip(samples.split(256), targets.split(256)):
            logits = network(normalise(part))
            right += (logits.argmax(-1) == wanted).sum().item()
            first, second = logits.topk(2, -1).values.unbind(-1)
            close += (first - second < 1e-5 * logits.abs().max()).sum().item()
    return right, targets.numel(), close


def check(card, network, files):
    """Compares what the card says with what the network reads of these files."""
    measured, places = card["measures"]["test"], card["data"]["test"]
    if measured is None:
        sys.exit("the card has no test accuracy: the run has measured none")
    samples, targets = read_part(files)
    if places is not None and len(targets) != len(places):
        samples, targets = samples[places], targets[places]
    right, count, close = evaluate(network, samples, targets)
    reported = round(measured["accuracy"] / 100 * measured["samples"])
    low, high = measured["interval"]
    print(f"accuracy {100 * right / count:.2f} %: {right} of {count} are right")
    print(f"the card {measured['accuracy']:.2f} %: {reported} of {measured['samples']}, 95 % interval {low:.2f} to {high:.2f}")
    if count != measured["samples"] or abs(right - reported) > close:
        sys.exit("these are not the numbers of the card: other data, or data that are prepared in another way")


def load(folder=None):
    """The network with its weights, ready to be applied."""
    folder = Path(folder) if folder else Path(__file__).parent
    network = Network()
    network.load_state_dict(read_safetensors(folder / "network.safetensors"))
    return network.eval()


def main(folder, arguments):
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    check(card, load(folder), arguments)


if __name__ == "__main__":
    try:
        main(Path(__file__).parent, sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(str(error))
