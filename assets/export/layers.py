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


class BatchNormRelu(nn.BatchNorm2d):
    def forward(self, x):
        return F.relu(super().forward(x))


class GroupNormRelu(nn.GroupNorm):
    def __init__(self, channels):
        super().__init__(group_norm(channels).num_groups, channels)

    def forward(self, x):
        return F.relu(super().forward(x))


def pad(x, stride, channels):
    """Every `stride`-th pixel, with zeros for the channels that are new."""
    x = x[:, :, ::stride, ::stride]
    return F.pad(x, (0, 0, 0, 0, 0, channels - x.shape[1]))


class Residual(nn.Module):
    """Two 3x3 convolutions and a way around them (He et al. 2016, arXiv:1512.03385)."""

    def __init__(self, inputs, outputs, norm, stride=1, projects=False):
        super().__init__()
        self.first = Unit(inputs, outputs, 3, norm, stride)
        self.second = Unit(outputs, outputs, 3, norm)
        self.stride, self.outputs = stride, outputs
        self.shortcut = Unit(inputs, outputs, 1, norm, stride) if projects else None

    def forward(self, x):
        around = self.shortcut(x) if self.shortcut else pad(x, self.stride, self.outputs)
        return F.relu(self.second(F.relu(self.first(x))) + around)


class PreActivated(nn.Module):
    """Two 3x3 convolutions with norms in front, and a way around them (He et al. 2016, arXiv:1603.05027)."""

    def __init__(self, inputs, outputs, norm, stride=1, projects=False):
        super().__init__()
        self.entry = norm_of(norm, inputs)
        self.first = Unit(inputs, outputs, 3, norm, stride)
        self.second = nn.Module()
        self.second.conv = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.stride, self.outputs = stride, outputs
        if projects:
            self.shortcut = nn.Module()
            self.shortcut.conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        else:
            self.shortcut = None

    def forward(self, x):
        active = F.relu(self.entry(x))
        around = self.shortcut.conv(active) if self.shortcut else pad(x, self.stride, self.outputs)
        return self.second.conv(F.relu(self.first(active))) + around


class Head(nn.Linear):
    """Mean over positions, then logits."""

    def forward(self, x):
        return super().forward(x.mean((2, 3)))


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
