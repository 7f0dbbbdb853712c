def normalise(images):
    """u8 [n, height, width, channels], as files hold them, to f32 [n, channels, height, width], as the network reads them."""
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[3] != len(SCALE):
        found = f"{images.dtype} {list(images.shape)}"
        raise ValueError(f"images are given as torch.uint8 [n, height, width, {len(SCALE)}], not as {found}")
    scale, offset = (torch.tensor(values, device=images.device) for values in (SCALE, OFFSET))
    return (images.float() * scale + offset).permute(0, 3, 1, 2)


def read_part(files):
    if len(files) != 2:
        sys.exit("usage: python network.py IMAGES.npy LABELS.npy, u8 [n, height, width, channels] and integers [n]")
    return read_npy(files[0]), read_npy(files[1]).long()
