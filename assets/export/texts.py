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
