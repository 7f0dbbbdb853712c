def load(folder=None):
    """The network with its weights, ready to be applied."""
    folder = Path(folder) if folder else Path(__file__).parent
    network = Network()
    network.load_state_dict(read_safetensors(folder / "network.safetensors"))
    return network.eval()


def main(folder, arguments):
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    check(card, load(folder), arguments)
