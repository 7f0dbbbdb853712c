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
