def photograph(image):
    """An image of PIL, u8 [side, side, channels], as the engine reads files: upright, its central square, scaled."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image).convert("L" if len(SCALE) == 1 else "RGB")
    left, top = ((length - min(image.size)) // 2 for length in image.size)
    image = image.crop((left, top, left + min(image.size), top + min(image.size))).resize((SIDE, SIDE), Image.BILINEAR)
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(SIDE, SIDE, len(SCALE))
