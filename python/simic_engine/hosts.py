"""A network written in PyTorch as a host that grows: ``host: grown("host.safetensors")`` in a scenario.

It reads lines of convolution, batch norm and ReLU, max pools, basic residual blocks, and at the end a mean over positions and a
linear layer. It leaves out dropout, which does nothing in evaluation mode. Layers keep their names from the module, so
``task.freeze`` finds them. There is a slot after every block.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import fx, nn
from torch.nn import functional

__all__ = ["to_host"]

_RELU = (nn.ReLU, torch.relu, functional.relu, "relu", "relu_")
_ADD = (operator.add, operator.iadd, torch.add, "add", "add_")
_FLATTEN = (nn.Flatten, torch.flatten, "flatten")
_MEAN = (torch.mean, "mean")
# Layers without effect in evaluation mode.
_NOTHING = (nn.Identity, nn.Dropout, nn.Dropout2d, functional.dropout, functional.dropout2d)
_BATCH_NORM = ("weight", "bias", "running_mean", "running_var")


def to_host(module: nn.Module, input_shape: tuple[int, int, int], path: str | Path = "host.safetensors") -> Path:
    """Writes ``module`` with its weights to ``path`` and returns the path.

    ``input_shape`` is that of an image: channels, height and width, the last two equal. The file doesn't contain what happens
    to pixels before the first layer: say that in ``task.normalise`` of the scenario.

    Raises ``ValueError`` with the name of the first layer that a host cannot have.
    """
    channels, height, width = input_shape
    if height != width:
        raise ValueError(f"images of {height}x{width} pixels were given, but a host reads square ones")
    reader = _Reader(module, channels, height)
    reader.read()
    description = json.dumps(reader.description(), separators=(",", ":"))
    digest = hashlib.sha256(description.encode())
    for name, tensor in sorted(reader.tensors.items(), key=lambda item: item[0].encode()):
        digest.update(f"{name} F32 {list(tensor.shape)} ".encode())
        digest.update(tensor.numpy().astype("<f4").tobytes())
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    save_file(reader.tensors, unfinished, metadata={"simic_engine": f"{digest.hexdigest()} {description}"})
    unfinished.replace(path)
    return path


class _Reader:
    """Follows the line of a traced module and writes down its layers."""

    def __init__(self, module: nn.Module, channels: int, side: int) -> None:
        try:
            traced = fx.symbolic_trace(module)
        except Exception as error:
            raise ValueError(f"torch.fx cannot trace the module: {error}") from error
        self.modules = dict(traced.named_modules())
        for node in traced.graph.nodes:
            if self._is(node, *_NOTHING):
                node.replace_all_uses_with(node.args[0])
                traced.graph.erase_node(node)
        self.nodes = traced.graph.nodes
        self.input, self.channels, self.side = (channels, side), channels, side
        self.layers: list[dict[str, Any]] = []
        self.slots: list[tuple[str, int]] = []
        self.tensors: dict[str, torch.Tensor] = {}
        self.macs = self.parameters = self.row = self.column = 0
        self.row_side = 0

    def read(self) -> None:
        here = next(node for node in self.nodes if node.op == "placeholder")
        for _ in self.nodes:
            users = list(here.users)
            if len(users) == 2:
                here = self._residual(here, users)
            elif self._is(users[0], nn.Conv2d):
                here = self._conv(users[0])
            elif self._is(users[0], nn.MaxPool2d):
                here = self._pool(users[0])
            else:
                return self._head(users[0])

    # What a node is.

    def _called(self, node: fx.Node) -> Any:
        return self.modules[str(node.target)] if node.op == "call_module" else node.target

    def _is(self, node: fx.Node, *kinds: Any) -> bool:
        called = self._called(node)
        return any(isinstance(called, kind) if isinstance(kind, type) else called == kind for kind in kinds)

    def _refuse(self, node: fx.Node, why: str) -> ValueError:
        return ValueError(f"layer {self._name(node)} cannot be part of a host: {why}")

    def _name(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return f"{node.target} ({type(self._called(node)).__name__})"
        return f"{node.name} ({node.op})"

    def _only_user(self, node: fx.Node, *kinds: Any, what: str) -> fx.Node:
        users = list(node.users)
        if len(users) != 1 or not self._is(users[0], *kinds):
            raise self._refuse(node, f"{what} must follow it, not {', '.join(map(self._name, users))}")
        return users[0]

    def _given(self, node: fx.Node, **usual: Any) -> tuple[Any, ...]:
        """Values of a module, or of a call except its tensors: in the order of ``usual``, which has the defaults."""
        if node.op == "call_module":
            return tuple(getattr(self._called(node), name) for name in usual)
        values = [value for value in node.args if not isinstance(value, fx.Node)]
        named = {name: value for name, value in node.kwargs.items() if not isinstance(value, fx.Node)}
        given = {**usual, **dict(zip([*usual, "more"], values)), **named}
        if len(given) > len(usual):
            raise self._refuse(node, f"it is called with {[*values, *named]}, but only {list(usual)} are supported")
        return tuple(given.values())

    # Layers and their tensors.

    def _add(self, node: fx.Node, name: str, layer: Any) -> None:
        if layer != "pool" and any(known["name"] == name for known in self.layers):
            raise self._refuse(node, f"there is a {name} already; call each module once")
        self.layers.append({"name": name, "layer": layer})

    def _slot(self) -> None:
        """Adds a slot after the last layer. Each size of the features has its own row of slots."""
        if self.row_side and self.row_side != self.side:
            self.row, self.column = self.row + 1, 0
        self.row_side = self.side
        self.slots.append((f"r{self.row}c{self.column}", len(self.layers)))
        self.column += 1

    def _take(self, name: str, tensor: torch.Tensor) -> None:
        self.tensors[name] = tensor.detach().to("cpu", torch.float32).contiguous().clone()

    def _unit(self, conv_node: fx.Node, prefix: str, channels: int) -> tuple[nn.Conv2d, fx.Node]:
        """Takes a convolution of features with ``channels``, and the batch norm after it."""
        conv = self._called(conv_node)
        if not isinstance(conv, nn.Conv2d):
            raise self._refuse(conv_node, "it must be a convolution")
        if conv.in_channels != channels:
            raise self._refuse(conv_node, f"it reads {conv.in_channels} channels, but gets {channels}")
        (kernel, other), (stride, same) = conv.kernel_size, conv.stride
        is_same = conv.padding in ("same", (kernel // 2, kernel // 2)) and (conv.padding != "same" or stride == 1)
        if kernel != other or stride != same or kernel % 2 == 0 or not is_same or conv.padding_mode != "zeros":
            raise self._refuse(conv_node, "its kernel must be square and odd, with a padding of zeros of half its width")
        if conv.groups != 1 or conv.dilation != (1, 1):
            raise self._refuse(conv_node, "it has groups or is dilated")
        norm_node = self._only_user(conv_node, nn.BatchNorm2d, what="a BatchNorm2d")
        norm = self._called(norm_node)
        if not norm.affine or not norm.track_running_stats or norm.eps != 1e-5 or norm.momentum != 0.1:
            raise self._refuse(norm_node, "a host's batch norm has weights, running statistics, eps 1e-5 and momentum 0.1")
        self._take(f"{prefix}conv.weight", conv.weight)
        for part in _BATCH_NORM:
            self._take(f"{prefix}norm.{part}", getattr(norm, part))
        self.parameters += conv.weight.numel() + 2 * conv.out_channels
        return conv, norm_node

    def _made(self, conv: nn.Conv2d, side: int) -> int:
        """The side after a convolution, whose multiply-accumulates are counted."""
        side = -(-side // conv.stride[0])
        self.macs += side * side * conv.weight.numel()
        return side

    def _conv(self, node: fx.Node) -> fx.Node:
        name = str(node.target)
        conv, norm = self._unit(node, f"{name}.", self.channels)
        relu = self._only_user(norm, *_RELU, what="a ReLU")
        sizes = {"inputs": conv.in_channels, "outputs": conv.out_channels, "kernel": conv.kernel_size[0], "stride": conv.stride[0]}
        self._add(node, name, {"conv": {**sizes, "bias": conv.bias is not None, "norm": "batch"}})
        if conv.bias is not None:
            self._take(f"{name}.conv.bias", conv.bias)
            self.parameters += conv.out_channels
        self.channels, self.side = conv.out_channels, self._made(conv, self.side)
        self._slot()
        return relu

    def _pool(self, node: fx.Node) -> fx.Node:
        pool = self._called(node)
        sizes = [value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
                 for value in (pool.kernel_size, pool.stride, pool.padding)]
        if not all(isinstance(size, int) for size in sizes) or pool.dilation not in (1, (1, 1)) or pool.ceil_mode:
            raise self._refuse(node, "its window must be square, without dilation and ceil_mode")
        kernel, stride, padding = sizes
        if (kernel, stride, padding) == (2, 2, 0):
            self._add(node, "pool", "pool")
        else:
            self._add(node, str(node.target), {"max_pool": {"kernel": kernel, "stride": stride, "padding": padding}})
        self.side = (self.side + 2 * padding - kernel) // stride + 1
        return node

    def _residual(self, here: fx.Node, users: list[fx.Node]) -> fx.Node:
        """Reads two 3x3 convolutions and their shortcut."""
        ends = [list(self._branch(user)) for user in users]
        inner = max(ends, key=len)
        around = min(ends, key=len)
        if len(inner) < 6:
            raise self._refuse(users[0], "it has two branches, but neither has two convolutions")
        name = str(inner[0].target).rpartition(".")[0] or f"block_{inner[0].name}"
        first, norm = self._unit(inner[0], f"{name}.first.", self.channels)
        relu = self._only_user(norm, *_RELU, what="a ReLU")
        second_node = self._only_user(relu, nn.Conv2d, what="a Conv2d")
        second, norm = self._unit(second_node, f"{name}.second.", first.out_channels)
        join = self._only_user(norm, *_ADD, what="the sum with the shortcut")
        for node, conv in ((inner[0], first), (second_node, second)):
            if conv.kernel_size != (3, 3) or conv.bias is not None:
                raise self._refuse(node, "the convolutions of a residual block are 3x3 and have no bias")
        if second.stride != (1, 1):
            raise self._refuse(second_node, "the second convolution of a residual block has stride 1")
        if around[0] is join:
            is_straight = True
        else:
            is_straight = False
            shortcut, end = self._unit(around[0], f"{name}.shortcut.", self.channels)
            if self._only_user(end, *_ADD, what="the sum with the block") is not join:
                raise self._refuse(around[0], "it doesn't end where the block ends")
            shape = (shortcut.kernel_size, shortcut.stride, shortcut.out_channels)
            if shape != ((1, 1), first.stride, second.out_channels) or shortcut.bias is not None:
                raise self._refuse(around[0], "a shortcut is a 1x1 convolution with stride and channels of its block and no bias")
            self._made(shortcut, self.side)
        keeps_shape = first.stride == (1, 1) and first.in_channels == second.out_channels
        if is_straight != keeps_shape:
            raise self._refuse(inner[0], "a shortcut has a convolution where the block changes the shape, and only there")
        if set(join.all_input_nodes) != {norm, here if is_straight else end}:
            raise self._refuse(join, "it doesn't sum a block and its shortcut")
        if self._given(join, alpha=1) != (1,):
            raise self._refuse(join, "its alpha is not 1; a host adds block and shortcut as they are")
        relu = self._only_user(join, *_RELU, what="a ReLU")
        sizes = {"inputs": first.in_channels, "outputs": second.out_channels, "stride": first.stride[0]}
        self._add(inner[0], name, {"residual": {**sizes, "shortcut": "projection", "pre_activation": False, "norm": "batch"}})
        self.channels, self.side = second.out_channels, self._made(first, self.side)
        self._made(second, self.side)
        self._slot()
        return relu

    def _branch(self, node: fx.Node) -> Iterator[fx.Node]:
        """The nodes of a branch, up to the sum."""
        yield node
        while not self._is(node, *_ADD) and len(node.users) == 1:
            node = next(iter(node.users))
            yield node

    def _head(self, node: fx.Node) -> None:
        if self._is(node, nn.AdaptiveAvgPool2d, functional.adaptive_avg_pool2d):
            if self._given(node, output_size=None)[0] not in (1, (1, 1), [1, 1]):
                raise self._refuse(node, "a host takes the mean over all positions")
            node = self._only_user(node, *_FLATTEN, what="a Flatten")
        elif self._is(node, *_MEAN):
            dims, keeps = self._given(node, dim=None, keepdim=False)
            if not isinstance(dims, (tuple, list)) or sorted(dim % 4 for dim in dims) != [2, 3]:
                raise self._refuse(node, f"it is the mean over dimensions {dims}; a host takes that over all positions, (2, 3)")
            if not keeps:
                return self._linear(node)
            node = self._only_user(node, *_FLATTEN, what="a Flatten")
        elif self.side != 1 or not self._is(node, *_FLATTEN):
            raise self._refuse(node, "a host is a line of Conv2d, BatchNorm2d and ReLU, MaxPool2d, basic residual blocks, "
                               "AdaptiveAvgPool2d(1) and Flatten or mean((2, 3)), and Linear")
        dims = self._given(node, start_dim=0, end_dim=-1)
        if dims not in ((1, -1), (1, 3), (-3, -1), (-3, 3)):
            raise self._refuse(node, f"it flattens dimensions {dims}; a host flattens all after the first, start_dim=1")
        self._linear(node)

    def _linear(self, node: fx.Node) -> None:
        node = self._only_user(node, nn.Linear, what="a Linear")
        if [(user.op, user.args) for user in node.users] != [("output", (node,))]:
            raise self._refuse(node, "the network must end with it and return its output; a softmax belongs to the loss")
        linear = self._called(node)
        if linear.in_features != self.channels:
            raise self._refuse(node, f"it reads {linear.in_features} features, but gets {self.channels}")
        name = str(node.target)
        self._add(node, name, {"head": {"inputs": linear.in_features, "classes": linear.out_features}})
        self._take(f"{name}.weight", linear.weight)
        self._take(f"{name}.bias", torch.zeros(linear.out_features) if linear.bias is None else linear.bias)
        self.parameters += linear.weight.numel() + linear.out_features
        self.macs += linear.weight.numel()

    def description(self) -> dict[str, Any]:
        channels, side = self.input
        sizes = {"parameters": self.parameters, "macs": self.macs, "host_parameters": self.parameters, "host_macs": self.macs}
        data = {"task": "", "name": "", "hash": "", "classes": [], "scale": [1 / 255] * channels, "offset": [0.0] * channels}
        origin = {"engine": f"torch {torch.__version__}", "run": None, "scenario": "", "scenario_hash": "", "seed": 0}
        return {
            "format": 1,
            "graph": {"topology": "image", "channels": channels, "side": side, "layers": self.layers, "slots": self.slots},
            "measures": {"validation": None, "test": None, **sizes},
            "data": {**data, "validation": None, "test": None},
            "origin": {**origin, "round": 0, "env": 0, "steps": 0, "rollbacks": 0},
            "growth": [],
        }
