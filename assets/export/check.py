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
