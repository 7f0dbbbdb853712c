"""Train samples a second of the engine's hosts in eager PyTorch, as one JSON object.

    python3 eager.py --device cuda [--quick]

Trainings run one after the other on one stream, as in a script. A batch does what the engine's does: it gathers and normalises
rows of a resident data set, then cross entropy, backward, gradients clipped to norm 1, and SGD with momentum, or AdamW for
texts.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F


def unit(inputs, outputs, stride=1, relu=True):
    layers = [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, a projection where the shape changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.inner = nn.Sequential(unit(inputs, outputs, stride), unit(outputs, outputs, relu=False))
        same = inputs == outputs and stride == 1
        project = [nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)]
        self.shortcut = nn.Identity() if same else nn.Sequential(*project)

    def forward(self, x):
        return F.relu(self.inner(x) + self.shortcut(x), inplace=True)


def head(width):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)]


def cnn(channels, base):
    layers, inputs = [], channels
    for outputs in (base, 2 * base, 4 * base):
        layers += [unit(inputs, outputs), nn.MaxPool2d(2)]
        inputs = outputs
    return nn.Sequential(*layers, *head(inputs))


def resnet(base, blocks):
    layers, inputs = [unit(3, base)], base
    for stage, count in enumerate(blocks):
        for index in range(count):
            outputs = base << stage
            layers.append(Block(inputs, outputs, 2 if stage and not index else 1))
            inputs = outputs
    return nn.Sequential(*layers, *head(inputs))


class Layer(nn.Module):
    """A pre-norm layer of GPT-2: causal attention, then an MLP four times as wide."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        rows, tokens, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(rows, tokens, 3, self.heads, width // self.heads)
        mixed = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, tokens, width))
        return x + self.mlp(self.norms[1](x))


class Transformer(nn.Module):
    """The host of `synth_tokens`: its head is tied to the embedding."""

    def __init__(self, vocab=64, block=64, width=64, heads=4, layers=3):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(block, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.layers(self.tokens(tokens) + self.places.weight)
        return F.linear(self.norm(x), self.tokens.weight)


MODELS = {
    "8x8 digits": (lambda: cnn(1, 4), (1, 8), 64),
    "32x32 images": (lambda: cnn(3, 8), (3, 32), 512),
    "ResNet-20": (lambda: resnet(16, (3, 3, 3)), (3, 32), 128),
    "ResNet-18": (lambda: resnet(64, (2, 2, 2, 2)), (3, 32), 128),
    "text": (Transformer, None, 64),
}


def images(shape, device):
    """A resident data set, and the function that turns its rows into inputs."""
    channels, side = shape
    data = torch.randint(0, 256, (2048, channels, side, side), dtype=torch.uint8, device=device)
    labels = torch.randint(0, 10, (2048,), device=device)
    return data.to(memory_format=torch.channels_last), labels, lambda rows: rows.to(torch.float32).div_(127.5).sub_(1.0)


def texts(device):
    """The same for texts, whose labels are the tokens that follow."""
    data = torch.randint(0, 64, (2048, 65), device=device)
    return data[:, :-1], data[:, 1:], lambda rows: rows


def samples_per_second(model, shape, batch, device, amp, seconds):
    torch.manual_seed(0)
    model = model().to(device, memory_format=torch.channels_last).train()
    if shape:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    data, labels, inputs_of = images(shape, device) if shape else texts(device)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    def play(batches):
        for _ in range(batches):
            rows = torch.randint(0, len(data), (batch,), device=device)
            inputs = inputs_of(data[rows])
            with torch.autocast(device, torch.bfloat16, enabled=amp):
                loss = F.cross_entropy(model(inputs).flatten(0, -2), labels[rows].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
        wait()

    play(8 if seconds else 1)
    began, batches = time.perf_counter(), 0
    while batches == 0 or time.perf_counter() - began < seconds:
        play(16 if seconds else 1)
        batches += 16 if seconds else 1
    return batches * batch / (time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    figures = {}
    for name, (model, shape, batch) in MODELS.items():
        for amp in (False, True):
            if options.quick and (amp or name == "ResNet-18"):
                continue
            rate = samples_per_second(model, shape, batch, options.device, amp, 0 if options.quick else 2.0)
            figures[f"{name}{' bf16' if amp else ''} samples/s"] = rate
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
