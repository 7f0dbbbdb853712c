"""A policy that simic-engine 0.2.0 has trained in 40 updates. It decides what to do in each slot of a network that grows.

`load()` returns it with its weights. `decide` plays it on the engine's `VectorEnv`. It needs torch alone.
"""

import json
import struct
from pathlib import Path

import torch
from torch import nn

# The heads of an action in their order, and what each may choose.
MEMBERS = {
    "slot": ["r0c0","r0c1","r0c2"],
    "blueprint": ["noop","conv_light","attention","norm","depthwise","bottleneck","conv_small","conv_heavy","","","","",""],
    "style": ["linear_add","linear_multiply","sigmoid_add","gated_gate"],
    "tempo": ["fast","standard","slow"],
    "alpha_target": ["half","seventy","full"],
    "alpha_speed": ["instant","fast","medium","slow"],
    "alpha_curve": ["linear","cosine","sigmoid_gentle","sigmoid","sigmoid_sharp"],
    "op": ["wait","germinate","set_alpha_target","prune","commit","advance"],
}
# Whether a head matters to each operation.
RELEVANT = {
    "slot": [0,1,1,1,1,1],
    "blueprint": [0,1,0,0,0,0],
    "style": [0,1,1,0,0,0],
    "tempo": [0,1,0,0,0,0],
    "alpha_target": [0,1,1,0,0,0],
    "alpha_speed": [0,0,1,1,0,0],
    "alpha_curve": [0,0,1,1,0,0],
    "op": [1,1,1,1,1,1],
}
# Rows of a head's logits: by slot, by the operations that it matters to, or one.
ROWS = {
    "slot": 5,
    "blueprint": 3,
    "style": 2,
    "tempo": 1,
    "alpha_target": 2,
    "alpha_speed": 2,
    "alpha_curve": 2,
    "op": 1,
}
PER_SLOT = True
# The least probability of a legal member.
FLOORS = {
    "slot": 0.010799999999999995,
    "blueprint": 0.010799999999999995,
    "style": 0.010799999999999995,
    "tempo": 0.017999999999999995,
    "alpha_target": 0.010799999999999995,
    "alpha_speed": 0.010799999999999995,
    "alpha_curve": 0.007199999999999998,
    "op": 0.003599999999999999,
}
OBSERVATION, CLIP = 135, 10.0
EMBEDDING, HIDDEN, LAYERS = 4, 128, 1


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


class Memory(nn.Module):
    """A layer of the core: x + norm(lstm(x))."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.ln = nn.LayerNorm(width)

    def forward(self, x, state):
        y, state = self.lstm(x, state)
        return x + self.ln(y), state


class Policy(nn.Module):
    """Logits of all heads and a value, from what N envs show in T steps."""

    def __init__(self):
        super().__init__()
        slots, blueprints = len(MEMBERS["slot"]), len(MEMBERS["blueprint"])
        # One row a blueprint, the last for an empty slot.
        self.emb = nn.Embedding(blueprints + 1, EMBEDDING)
        width = OBSERVATION + slots * EMBEDDING
        self.feature = nn.Sequential(nn.Linear(width, HIDDEN), nn.LayerNorm(HIDDEN), nn.ReLU())
        self.core = nn.ModuleDict({str(layer): Memory(HIDDEN) for layer in range(LAYERS)})
        self.head = nn.ModuleDict({head: self._head(head) for head in MEMBERS})
        half, quarter, eighth = HIDDEN // 2, HIDDEN // 4, HIDDEN // 8
        self.value = nn.Sequential(
            nn.Linear(HIDDEN, half), nn.LayerNorm(half), nn.ReLU(),
            nn.Linear(half, quarter), nn.LayerNorm(quarter), nn.ReLU(),
            nn.Linear(quarter, eighth), nn.ReLU(), nn.Linear(eighth, 1),
        )
        # An element is read as (value - mean) / deviation; that of a slot only while the element of its flag is not 0.
        self.register_buffer("mean", torch.zeros(OBSERVATION))
        self.register_buffer("deviation", torch.ones(OBSERVATION))
        self.register_buffer("flag", torch.full((OBSERVATION,), -1))

    def _head(self, head):
        wide = [nn.Linear(HIDDEN, HIDDEN), nn.ReLU()] if head == "blueprint" else []
        outputs = ROWS[head] * len(MEMBERS[head])
        return nn.Sequential(*wide, nn.Linear(HIDDEN, HIDDEN // 2), nn.ReLU(), nn.Linear(HIDDEN // 2, outputs))

    def normalise(self, observations):
        scaled = (observations - self.mean) / self.deviation
        is_empty = (self.flag >= 0) & (observations[..., self.flag.clamp(min=0)] == 0)
        return torch.where(is_empty, observations, scaled).clamp(-CLIP, CLIP)

    def forward(self, observations, blueprints, state=None):
        """observations: f32 [N, T, OBSERVATION], as the engine shows them; blueprints: i64 [N, T, slots], -1 where a slot is empty; state: of
        an earlier call, None at the begin of an episode. Returns logits {head: [N, T, rows, members]}, the value [N, T] in the
        units of the learner's normaliser, and the state behind the last step."""
        rows = torch.where(blueprints < 0, self.emb.num_embeddings - 1, blueprints)
        x = self.feature(torch.cat([self.normalise(observations), self.emb(rows).flatten(-2)], -1))
        if state is None:
            state = 2 * [x.new_zeros(LAYERS, len(x), HIDDEN)]
        after = []
        for layer in range(LAYERS):
            x, part = self.core[str(layer)](x, tuple(part[layer : layer + 1].contiguous() for part in state))
            after.append(part)
        logits = {head: net(x).unflatten(-1, (ROWS[head], -1)) for head, net in self.head.items()}
        return logits, self.value(x).squeeze(-1), [torch.cat(parts) for parts in zip(*after)]

    def decide(self, observations, blueprints, mask, state=None, decides=None, sample=False, actions=None):
        """One step of N envs of the engine's `VectorEnv` with factored actions, whose infos have blueprints, mask and decides.

        Takes the likeliest member of each head, draws if `sample`, or takes the `actions` that are given. Returns actions i64
        [N, 8], the log-probability of each member f64 [N, 8], values [N], and the state. An env that does not decide waits, and
        keeps its state."""
        observations, blueprints, mask = map(torch.as_tensor, (observations, blueprints, mask))
        logits, value, after = self(observations.unsqueeze(1), blueprints.unsqueeze(1), state)
        if decides is not None:
            still = ~torch.as_tensor(decides).unsqueeze(-1)
            before = [torch.zeros_like(part) for part in after] if state is None else state
            after = [torch.where(still, old, new) for old, new in zip(before, after)]
        # Row by operation: the members of each head that are legal with it.
        valid = dict(zip(MEMBERS, mask.bool().split([len(members) for members in MEMBERS.values()], -1)))
        envs = torch.arange(len(mask))
        chosen, log_probs = {}, {}
        for head in ["op", *(head for head in MEMBERS if head != "op")]:
            if head == "op":
                legal, row = valid["op"].diagonal(dim1=1, dim2=2), 0
            else:
                legal, row = valid[head][envs, chosen["op"]], self._row(head, chosen)
            probabilities = floored(logits[head][:, 0][envs, row], legal, FLOORS[head])
            if actions is not None:
                member = torch.as_tensor(actions)[:, list(MEMBERS).index(head)]
            elif sample:
                member = probabilities.multinomial(1).squeeze(-1)
            else:
                member = probabilities.argmax(-1)
            chosen[head], log_probs[head] = member, probabilities[envs, member].log()
        in_order = [torch.stack([found[head] for head in MEMBERS], -1) for found in (chosen, log_probs)]
        return (*in_order, value.squeeze(-1), after)

    def _row(self, head, chosen):
        """Which row of a head's logits counts: that of the slot, that of the operation among those it matters to, or the only one."""
        if ROWS[head] == 1:
            return 0
        if head == "blueprint" and PER_SLOT:
            return chosen["slot"]
        relevant = torch.tensor(RELEVANT[head])
        return ((relevant.cumsum(0) - 1) * relevant)[chosen["op"]]


def floored(logits, legal, floor):
    """Probabilities of the legal members, each of which keeps `floor`, or half of a uniform share if that is less."""
    probabilities = logits.double().masked_fill(~legal, -torch.inf).softmax(-1)
    count = legal.sum(-1, keepdim=True).double()
    least = (0.5 / count).clamp(max=floor)
    return torch.where(legal, (1 - count * least) * probabilities + least, 0)


def load(folder=None):
    """The policy with its weights."""
    folder = Path(folder) if folder else Path(__file__).parent
    policy = Policy()
    policy.load_state_dict(read_safetensors(folder / "policy.safetensors"))
    return policy.eval()
