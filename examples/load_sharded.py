# SPDX-License-Identifier: Apache-2.0
"""Loads a checkpoint of float8 or other quantized weights into a model that FSDP2 shards: each rank reads its rows.

    torchrun --nproc-per-node 4 load_sharded.py FOLDER
"""

import json
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import tensorcast.torch


class Layer(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(hidden)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        change: torch.Tensor = self.down_proj(self.up_proj(self.input_layernorm(x)).relu())
        return x + change


class Model(nn.Module):
    def __init__(self, vocab_size: int, hidden_size: int, intermediate_size: int, num_hidden_layers: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(Layer(hidden_size, intermediate_size) for _ in range(num_hidden_layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return x @ self.embed_tokens.weight.T


def load(folder: str) -> Model:
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    sizes = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    with torch.device("meta"):
        model = Model(*(config[size] for size in sizes)).to(torch.bfloat16)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    model.to_empty(device="cpu")
    state = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}  # names as the checkpoint has them
    # Into the model's own memory.
    dcp.load(state, storage_reader=tensorcast.torch.QuantizedReader(folder))  # type: ignore[attr-defined]
    return model


def main() -> int:
    dist.init_process_group("gloo")
    model = load(sys.argv[1])
    own = sum(parameter.to_local().numel() for parameter in model.parameters() if isinstance(parameter, DTensor))
    total = sum(parameter.numel() for parameter in model.parameters())
    logits = model(torch.arange(4))
    print(f"rank {dist.get_rank()} has {own} of {total} numbers, logits {tuple(logits.shape)}\n", end="", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
