"""Networks that the program has exported."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .errors import EngineError

if TYPE_CHECKING:
    import torch


def load_network(folder: str | os.PathLike[str]) -> torch.nn.Module:
    """The network in a folder that ``simic-engine export`` or ``grow`` has written, with its weights.

    This runs the folder's own ``network.py``, which defines its classes: load only what you trust. The network doesn't need
    this package.
    """
    file = Path(folder).resolve() / "network.py"
    if not file.is_file():
        raise EngineError(f"{folder} doesn't hold an exported network: it has no {file.name}")
    # Two folders, and one that was exported again, are different modules.
    version = hashlib.sha256(f"{file}\0".encode() + file.read_bytes()).hexdigest()[:16]
    name = f"simic_engine_network_{version}"
    module = sys.modules.get(name)
    if module is None:
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise EngineError(f"{file} cannot be read as a Python module")
        module = importlib.util.module_from_spec(spec)
        # Pickling the network needs the module here.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return cast("torch.nn.Module", module.load())
