import json
import struct
from pathlib import Path

import torch
from torch import nn
