class Domains(nn.Module):
    """The given network, `net(x)`, and what it has become for other data, `net(x, domain="name")`. Tensors that both have are one."""

    def __init__(self):
        super().__init__()
        self.given = Network()
        # A name alone may be that of a method.
        self.domains = nn.ModuleDict({f"of_{name}": network() for name, network in DOMAINS.items()})

    def forward(self, x, domain=None):
        if domain is not None and domain not in DOMAINS:
            raise ValueError(f"there is no domain {domain!r}; there are: {', '.join(DOMAINS)}")
        return self.given(x) if domain is None else self.domains[f"of_{domain}"](x)

    def domain_of(self, x):
        """The domain that a batch is of, `None` for the given one: that whose first batch norm expects statistics nearest to those that
        the batch has there, by the divergence (Kullback and Leibler 1951) of normal distributions, mean over the channels."""
        def distance(network):
            seen, norm = [], next((module for module in network.modules() if isinstance(module, nn.BatchNorm2d)), None)
            if norm is None:
                raise ValueError("the network has no batch norm, whose statistics could tell domains")
            with norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])), torch.inference_mode():
                network(x)
            mean, variance = seen[0].mean((0, 2, 3)), seen[0].var((0, 2, 3), unbiased=False)
            known = norm.running_var + norm.eps
            return (((mean - norm.running_mean) ** 2 + variance) / known - (variance / known + 1e-12).log()).mean().item()

        networks = {None: self.given, **{name: self.domains[f"of_{name}"] for name in DOMAINS}}
        return min(networks, key=lambda name: distance(networks[name]))


def load(folder=None):
    """The network with its domains and weights, ready to be applied. Weights of the given network don't learn."""
    folder = Path(folder) if folder else Path(__file__).parent
    tensors = read_safetensors(folder / "network.safetensors")
    network = Domains()
    network.given.load_state_dict({name: tensor for name, tensor in tensors.items() if "::" not in name})
    shared = {**dict(network.given.named_parameters()), **dict(network.given.named_buffers())}
    for domain in DOMAINS:
        module, prefix = network.domains[f"of_{domain}"], f"{domain}::"
        own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        foreign = module.load_state_dict(own, strict=False).unexpected_keys
        if foreign:
            raise ValueError(f"the domain {domain} has no {', '.join(foreign)}")
        for name in module.state_dict().keys() - own.keys():
            holder, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(holder), attribute, shared[name])
    network.given.requires_grad_(False)
    return network.eval()


def certify(folder, originals):
    """Proves that the given network is as it was, with domains or without."""
    import hashlib

    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    expected = card["certificate"]
    files = {"network.safetensors": card["sha256"], "certificate.safetensors": expected["images_sha256"]}
    failures = [
        f"{name} is not the file that the card names"
        for name, known in files.items() if hashlib.sha256((folder / name).read_bytes()).hexdigest() != known
    ]
    network, alone = load(folder), Network().eval()
    tensors = read_safetensors(folder / "network.safetensors")
    alone.load_state_dict({name: tensor for name, tensor in tensors.items() if "::" not in name})
    told = read_safetensors(folder / "certificate.safetensors")
    images = normalise(told["images"])
    with torch.inference_mode():
        before = alone(images)
        for domain in DOMAINS:
            network(images, domain=domain)
        after = network(images)
    weights = hashlib.sha256()
    for name, tensor in sorted(alone.state_dict().items()):
        if not name.endswith("num_batches_tracked"):
            weights.update(name.encode() + tensor.contiguous().numpy().tobytes())
    inside = list(network.given.state_dict().values())
    if weights.hexdigest() != expected["sha256"]:
        failures.append(f"the weights have the SHA-256 {weights.hexdigest()}, the card says {expected['sha256']}")
    if not torch.equal(before, after):
        failures.append("with domains the given network has other logits than without")
    apart = (before - told["logits"]).abs().max().item()
    if not apart <= 1e-4 * told["logits"].abs().max().clamp(min=1).item():
        failures.append(f"its logits are {apart:.2e} from those of the engine")
    for path in originals:
        given = {name: tensor for name, tensor in read_safetensors(path).items() if not name.endswith("num_batches_tracked")}
        for name, tensor in given.items():
            # A file with other names is searched for the values; half precision is the same value in single.
            places = [tensors[name]] if name in tensors else inside
            if not any(torch.equal(tensor.float(), place) for place in places):
                failures.append(f"{name} of {path} is not inside")
        if not given:
            failures.append(f"{path} has no tensors")
    if failures:
        sys.exit("\n".join(failures))
    same = "the same bits" if apart == 0 else f"{apart:.1e} apart at most, as other processors round"
    print(f"weights: SHA-256 {weights.hexdigest()}, as given")
    print(f"logits of {len(images)} images: the same bits with and without domains ({', '.join(DOMAINS)}); from the engine's: {same}")
    for path in originals:
        print(f"{path}: all of its tensors are inside, bit for bit")


def main(folder, arguments):
    """`--certificate [ORIGINAL.safetensors]`, or the check against data, of the given network or of a domain that is named first."""
    if arguments[:1] == ["--certificate"]:
        return certify(folder, arguments[1:])
    card, network = json.loads((folder / "card.json").read_text(encoding="utf-8")), load(folder)
    if len(arguments) == 3:
        domain, *arguments = arguments
        if domain not in DOMAINS:
            sys.exit(f"there is no domain {domain}; there are: {', '.join(DOMAINS)}")
        check(card["domains"][domain], lambda x: network(x, domain=domain), arguments)
    else:
        check(card, network, arguments)
