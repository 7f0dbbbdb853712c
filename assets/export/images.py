def normalise(images):
    """u8 [n, height, width, channels], as files hold them, to f32 [n, channels, height, width], as the network reads them."""
    scale, offset = (torch.tensor(values, device=images.device) for values in (SCALE, OFFSET))
    return (images.float() * scale + offset).permute(0, 3, 1, 2)


def read_part(files):
    if len(files) != 2:
        sys.exit("usage: python network.py IMAGES.npy LABELS.npy, u8 [n, height, width, channels] and integers [n]")
    return read_npy(files[0]), read_npy(files[1]).long()
