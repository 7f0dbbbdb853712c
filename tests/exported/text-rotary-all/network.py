"""A network that simic-engine 0 has grown: 0 parameters, 0 of them in 8 seeds.

`load()` returns it with its weights, `normalise(samples)` turns samples as files hold them into what it reads.
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


class Embedding(nn.Module):
    """Tokens to features; with learned positions up to `block`."""

    def __init__(self, vocab, width, block, learned):
        super().__init__()
        self.block = block
        self.tokens = nn.Parameter(torch.empty(vocab, width))
        self.positions = nn.Parameter(torch.empty(block, width)) if learned else None

    def forward(self, x):
        if x.shape[1] > self.block:
            raise ValueError(f"the network reads up to {self.block} tokens at a time, not {x.shape[1]}")
        features = F.embedding(x, self.tokens)
        return features if self.positions is None else features + self.positions[: x.shape[1]]


def turn(x):
    """Rotary positions (Su et al. 2021, arXiv:2104.09864): each pair of channels is turned by its position."""
    pairs = x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(pairs, dtype=torch.float64, device=x.device) / pairs)
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64, device=x.device), rates)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :pairs], x[..., pairs:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Module):
    """Causal self-attention, over all positions or the last `window`."""

    def __init__(self, width, heads, window=None, rotary=False):
        super().__init__()
        self.heads, self.window, self.rotary = heads, window, rotary
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.rotary:
            q, k = turn(q), turn(k)
        if self.window is None:
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).tril().triu(1 - self.window)
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(seen.transpose(1, 2).reshape(batch, tokens, width))


class Text(nn.Module):
    """Attention and two linear maps, each with a norm in front and a way around."""

    def __init__(self, width, heads, rotary):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, rotary=rotary)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class TextHead(nn.Module):
    """A norm, and logits by the weight of the embedding."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x, tokens):
        return F.linear(self.norm(x), tokens)


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


class Norm(Seed):
    """tanh(strength) times what a norm changes."""

    def __init__(self, norm, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.strength = nn.Parameter(torch.zeros(1))
        self.norm = norm

    def delta(self, x):
        return (self.norm(x) - x) * self.strength.tanh()


class TwoMaps(Seed):
    """Two linear maps; `mlp`: with biases and GELU between them."""

    def __init__(self, hidden, mlp, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.mlp = mlp
        self.add_module("in", nn.Linear(channels, hidden, bias=mlp))
        self.add_module("out", nn.Linear(hidden, channels, bias=mlp))

    def delta(self, x):
        x = self.get_submodule("in")(x)
        return self.get_submodule("out")(F.gelu(x) if self.mlp else x)


class AttentionSeed(Seed):
    def __init__(self, attention, channels, operator, amplitude):
        super().__init__(channels, operator, amplitude)
        self.attention = attention

    def delta(self, x):
        return self.attention(x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embedding(20, 16, block=40, learned=False)
        self.layer0 = Text(16, heads=4, rotary=True)
        # grew in slot r0c0: noop, in an earlier growth
        self.r0c0 = Nothing(channels=16, operator="add", amplitude=0.7)
        # grew in slot r0c0: lora, in an earlier growth
        self.r0c0_2 = TwoMaps(8, mlp=False, channels=16, operator="add", amplitude=0.7)
        # grew in slot r0c0: mlp, in an earlier growth
        self.r0c0_3 = TwoMaps(64, mlp=True, channels=16, operator="add", amplitude=0.7)
        self.layer1 = Text(16, heads=4, rotary=True)
        # grew in slot r0c1: attention, in an earlier growth
        self.r0c1 = AttentionSeed(Attention(16, 4), channels=16, operator="multiply", amplitude=0.7)
        # grew in slot r0c1: lora_large, in an earlier growth
        self.r0c1_2 = TwoMaps(32, mlp=False, channels=16, operator="multiply", amplitude=0.7)
        # grew in slot r0c1: flex_attention, in an earlier growth
        self.r0c1_3 = AttentionSeed(Attention(16, 4, window=64), channels=16, operator="multiply", amplitude=0.7)
        self.layer2 = Text(16, heads=4, rotary=True)
        # grew in slot r0c2: norm, in an earlier growth
        self.r0c2 = Norm(nn.LayerNorm(16), channels=16, operator="gate", amplitude=0.7)
        # grew in slot r0c2: mlp_small, in an earlier growth
        self.r0c2_2 = TwoMaps(32, mlp=True, channels=16, operator="gate", amplitude=0.7)
        self.head = TextHead(16)

    def forward(self, x):
        x = self.embed(x)
        x = self.layer0(x)
        x = self.r0c0(x)
        x = self.r0c0_2(x)
        x = self.r0c0_3(x)
        x = self.layer1(x)
        x = self.r0c1(x)
        x = self.r0c1_2(x)
        x = self.r0c1_3(x)
        x = self.layer2(x)
        x = self.r0c2(x)
        x = self.r0c2_2(x)
        return self.head(x, self.embed.tokens)


def normalise(tokens):
    """Integers [n, tokens] as the network reads them."""
    if tokens.dtype.is_floating_point or tokens.ndim != 2:
        raise ValueError(f"tokens are given as integers [n, tokens], not as {tokens.dtype} {list(tokens.shape)}")
    return tokens.long()


def read_part(files):
    if len(files) != 1:
        sys.exit("usage: python network.py WINDOWS.npy, integers [n, tokens + 1]: inputs, and targets one further")
    windows = read_npy(files[0]).long()
    return windows[:, :-1], windows[:, 1:]


def read_safetensors(path):
    """The tensors of a safetensors file by name."""
    kinds = {"F32": torch.float32, "I64": torch.int64}
    data = bytearray(Path(path).read_bytes())
    (size,) = struct.unpack_from("<Q", data) if len(data) >= 8 else (len(data),)
    if size > len(data) - 8:
        raise ValueError(f"{path} is cut off: its header has {size} bytes")
    tensors, first_byte = {}, 8 + size
    for name, entry in json.loads(data[8:first_byte]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            if not 0 <= first <= last <= len(data) - first_byte:
                raise ValueError(f"{path} is cut off: it has not all of {name}")
            flat = torch.frombuffer(data[first_byte + first : first_byte + last], dtype=kinds[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def load(folder=None):
    """The network with its weights, ready to be applied."""
    folder = Path(folder) if folder else Path(__file__).parent
    network = Network()
    network.load_state_dict(read_safetensors(folder / "network.safetensors"))
    return network.eval()


def read_npy(path):
    """The integers of a NumPy file."""
    kinds = {"u1": torch.uint8, "i1": torch.int8, "i2": torch.int16, "i4": torch.int32, "i8": torch.int64}
    data = bytearray(Path(path).read_bytes())
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is no NPY file")
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


def main(folder, files):
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    measured, places = card["measures"]["test"], card["data"]["test"]
    if measured is None:
        sys.exit("the card has no test accuracy: the run has measured none")
    samples, targets = read_part(files)
    if places is not None and len(targets) != len(places):
        samples, targets = samples[places], targets[places]
    right, count, close = evaluate(load(folder), samples, targets)
    reported = round(measured["accuracy"] / 100 * measured["samples"])
    low, high = measured["interval"]
    print(f"accuracy {100 * right / count:.2f} %: {right} of {count} are right")
    print(f"the card {measured['accuracy']:.2f} %: {reported} of {measured['samples']}, 95 % interval {low:.2f} to {high:.2f}")
    if count != measured["samples"] or abs(right - reported) > close:
        sys.exit("these are not the numbers of the card: other data, or data that are prepared in another way")


if __name__ == "__main__":
    main(Path(__file__).parent, sys.argv[1:])
