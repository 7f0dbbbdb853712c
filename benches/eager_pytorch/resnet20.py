"""Train samples a second of ResNet-20 (shortcuts without parameters) in eager PyTorch, on images of 3x32x32.

    python3 resnet20.py --batch 128 --batches 32 --threads 2 --channels-last

Prints the number of parameters and the samples a second, on a line each. A batch does what the engine's does:
rows of a resident data set are gathered, normalised on arrival, cross entropy, backward, gradients clipped to norm 1,
SGD with momentum.
"""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut: every second position and zeros for new channels where the shape changes."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride = stride
        self.new_channels = outputs - inputs

    def forward(self, x):
        inner = F.relu(self.norm1(self.conv1(x)), inplace=True)
        inner = self.norm2(self.conv2(inner))
        if self.new_channels:
            before = self.new_channels // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, self.new_channels - before))
        return F.relu(inner + x, inplace=True)


def resnet20(classes=10):
    """He et al. 2015 (arXiv 1512.03385), section 4.2, with n = 3."""
    stages, inputs = [], 16
    for outputs, stride in [(16, 1), (32, 2), (64, 2)]:
        for index in range(3):
            stages.append(Block(inputs, outputs, stride if index == 0 else 1))
            inputs = outputs
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--batches", type=int, default=32, help="timed batches; a quarter as many run before")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    model = resnet20().to(memory_format=layout).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)
    images = torch.randint(0, 256, (2048, 3, 32, 32), dtype=torch.uint8).to(memory_format=layout)
    labels = torch.randint(0, 10, (2048,))

    def play(batches):
        for _ in range(batches):
            rows = torch.randint(0, len(images), (options.batch,))
            inputs = images[rows].to(torch.float32).div_(127.5).sub_(1.0).contiguous(memory_format=layout)
            loss = F.cross_entropy(model(inputs), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()

    play(max(options.batches // 4, 1))
    began = time.perf_counter()
    play(options.batches)
    seconds = time.perf_counter() - began
    print(sum(parameter.numel() for parameter in model.parameters()))
    print(f"{options.batches * options.batch / seconds:.1f}")


if __name__ == "__main__":
    main()
