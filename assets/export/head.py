import ast
import json
import struct
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
