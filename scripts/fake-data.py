#!/usr/bin/env python3
"""Writes data sets in the formats of public ones, with generated images or texts that can be learnt, to try out programs
that read them.

    scripts/fake-data.py cifar10 data                       # data/cifar-10-binary.tar.gz
    scripts/fake-data.py cifar100 data --train 2000 --test 500
    scripts/fake-data.py mnist data/mnist                   # the four IDX files, packed
    scripts/fake-data.py images data/gratings --classes 4   # PNG files in train, val and test folders
    scripts/fake-data.py npz data                           # data/set.npz
    scripts/fake-data.py tokens data/tinystories            # TinyStories_train.bin, TinyStories_val.bin

A class is the direction and width of a grating, drawn at any phase in noise. A text is 64 tokens, each one of four that may
follow the one before it. Every option has a default. The same options give the same bytes. Figures that were reached on these
images and texts say nothing about the sets whose formats they borrow. Always call them figures on generated data.
"""

import argparse
import gzip
import io
import math
import random
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

PHASES = 16
# Tokens of a text.
TEXT = 64
# One date for all archives, so their bytes depend only on the options.
EPOCH = (1980, 1, 1, 0, 0, 0)


class Gratings:
    """Images of `channels` planes, `side` pixels wide and high; a class is an angle and a period."""

    def __init__(self, classes, side, channels, seed):
        self.classes, self.side, self.channels = classes, side, channels
        self.random = random.Random(seed)
        self.planes = {}

    def plane(self, label, phase):
        """A grating without noise, as values from 64 to 191."""
        if (label, phase) not in self.planes:
            angle = math.pi * label / self.classes
            cycle = 2 * math.pi / (4 + 4 * (label % 2))
            across, down = cycle * math.cos(angle), cycle * math.sin(angle)
            offset = 2 * math.pi * phase / PHASES
            self.planes[label, phase] = [
                128 + round(63 * math.sin(across * x + down * y + offset))
                for y in range(self.side)
                for x in range(self.side)
            ]
        return self.planes[label, phase]

    def image(self, label):
        """Its planes, one after another."""
        phase = self.random.randrange(PHASES)
        planes = []
        for _ in range(self.channels):
            noise = self.random.randbytes(self.side * self.side)
            planes.append(bytes(p + (n >> 1) - 64 for p, n in zip(self.plane(label, phase), noise)))
        return b"".join(planes)

    def part(self, count):
        """`count` images in a shuffled order, as pairs of label and planes."""
        labels = [index % self.classes for index in range(count)]
        self.random.shuffle(labels)
        return [(label, self.image(label)) for label in labels]

    def interleaved(self, planes):
        """The same image with the channels of a pixel next to each other."""
        area = self.side * self.side
        return bytes(planes[channel * area + at] for at in range(area) for channel in range(self.channels))


def packed(data):
    return gzip.compress(data, mtime=0)


def write_tar(path, folder, files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files:
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    path.write_bytes(packed(buffer.getvalue()))


def cifar10(options):
    images = Gratings(10, 32, 3, options.seed)

    def records(count):
        return b"".join(bytes([label]) + planes for label, planes in images.part(count))

    shares = [options.train // 5 + (batch < options.train % 5) for batch in range(5)]
    files = [(f"data_batch_{batch + 1}.bin", records(share)) for batch, share in enumerate(shares)]
    names = "".join(f"grating_{label}\n" for label in range(10)).encode()
    files += [("test_batch.bin", records(options.test)), ("batches.meta.txt", names)]
    path = options.out / "cifar-10-binary.tar.gz"
    write_tar(path, "cifar-10-batches-bin", files)
    return path


def cifar100(options):
    images = Gratings(100, 32, 3, options.seed)

    def records(count):
        return b"".join(bytes([label // 5, label]) + planes for label, planes in images.part(count))

    names = "".join(f"grating_{label:02}\n" for label in range(100)).encode()
    path = options.out / "cifar-100-binary.tar.gz"
    files = [("train.bin", records(options.train)), ("test.bin", records(options.test)), ("fine_label_names.txt", names)]
    write_tar(path, "cifar-100-binary", files)
    return path


def mnist(options):
    images = Gratings(10, 28, 1, options.seed)
    for prefix, count in (("train", options.train), ("t10k", options.test)):
        part = images.part(count)
        pixels = struct.pack(">IIII", 0x803, count, 28, 28) + b"".join(planes for _, planes in part)
        labels = struct.pack(">II", 0x801, count) + bytes(label for label, _ in part)
        (options.out / f"{prefix}-images-idx3-ubyte.gz").write_bytes(packed(pixels))
        (options.out / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(packed(labels))
    return options.out


def png(side, channels, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = side * channels
    rows = b"".join(b"\0" + pixels[at : at + row] for at in range(0, len(pixels), row))
    head = struct.pack(">IIBBBBB", side, side, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def images(options):
    gratings = Gratings(options.classes, options.side, options.channels, options.seed)
    for name, count in (("train", options.train), ("val", options.val), ("test", options.test)):
        for index, (label, planes) in enumerate(gratings.part(count)):
            folder = options.out / name / f"class_{label:02}"
            folder.mkdir(parents=True, exist_ok=True)
            pixels = gratings.interleaved(planes)
            (folder / f"{index:06}.png").write_bytes(png(options.side, options.channels, pixels))
    return options.out


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    length = -(-(10 + len(header) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header.ljust(length - 1).encode() + b"\n" + data


def npz(options):
    gratings = Gratings(options.classes, options.side, options.channels, options.seed)
    path = options.out / "set.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, count in (("train", options.train), ("val", options.val), ("test", options.test)):
            part = gratings.part(count)
            pixels = b"".join(gratings.interleaved(planes) for _, planes in part)
            labels = struct.pack(f"<{count}q", *(label for label, _ in part))
            shape = (count, options.side, options.side, options.channels)
            arrays = ((f"x_{name}", npy("|u1", shape, pixels)), (f"y_{name}", npy("<i8", f"({count},)", labels)))
            for array, data in arrays:
                archive.writestr(zipfile.ZipInfo(f"{array}.npy", EPOCH), data, zipfile.ZIP_DEFLATED)
    return path


def tokens(options):
    """Files of 16-bit tokens with the header of llm.c; the last token of the vocabulary ends a text."""
    draw = random.Random(options.seed)
    end = options.vocab - 1
    for name, count in (("train", options.train), ("val", options.val)):
        stream = []
        for _ in range(count):
            token = draw.randrange(end)
            for _ in range(TEXT - 1):
                stream.append(token)
                token = (31 * token + 7 * draw.choice((0, 0, 0, 1, 1, 2, 3)) + 1) % end
            stream.append(end)
        header = struct.pack("<3i", 20240520, 1, len(stream)).ljust(1024, b"\0")
        path = options.out / f"TinyStories_{name}.bin"
        path.write_bytes(header + struct.pack(f"<{len(stream)}H", *stream))
    return options.out


FORMATS = {"cifar10": cifar10, "cifar100": cifar100, "mnist": mnist, "images": images, "npz": npz, "tokens": tokens}


def count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def vocabulary(text):
    value = int(text)
    if not 2 <= value <= 65536:
        raise argparse.ArgumentTypeError("2 to 65536")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("out", type=Path, help="folder to write into, created if missing")
    parser.add_argument("--train", type=count, default=5000, help="training images or texts [5000]")
    parser.add_argument("--val", type=count, default=500, help="validation images or texts, where the format has them [500]")
    parser.add_argument("--test", type=count, default=1000, help="test images [1000]")
    parser.add_argument("--classes", type=count, default=10, help="number of classes, for images and npz [10]")
    parser.add_argument("--side", type=count, default=32, help="pixels of a side, for images and npz [32]")
    parser.add_argument("--channels", type=int, choices=(1, 3), default=3, help="channels, for images and npz [3]")
    parser.add_argument("--vocab", type=vocabulary, default=50257, help="different tokens [50257]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the images or texts [0]")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = FORMATS[options.format](options)
    print(f"generated, not public data: {path}")


if __name__ == "__main__":
    main()
