# SPDX-License-Identifier: Apache-2.0
"""One rank of four that load a quantized checkpoint: FOLDER MODE RANK STORE. Compares its shards with tensorcast.load."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import tensorcast as tc
import tensorcast.torch

RANKS = 4


class Model(nn.Module):
    """Modules with the weights of a checkpoint; names keep their dots, as state dicts have them."""

    def __init__(self, wanted):
        super().__init__()
        for name, tensor in wanted.items():
            module = self
            *path, leaf = name.split(".")
            for step in path:
                if step not in module._modules:
                    module.add_module(step, nn.Linear(*tensor.shape[::-1], bias=False) if tensor.dim() == 2 and step == path[-1] else nn.Module())
                module = module._modules[step]
            module.register_parameter(leaf, nn.Parameter(torch.zeros_like(tensor), requires_grad=False))


def fsdp2(wanted):
    model = Model(wanted)
    fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,)))
    return model.state_dict()


def tensor_parallel(wanted):
    """Every second matrix by columns, the others by rows, as the two of an MLP are."""
    model = Model(wanted)
    mesh = init_device_mesh("cpu", (RANKS,))
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    plan = {name: RowwiseParallel() if i % 2 else ColwiseParallel() for i, name in enumerate(linear)}
    return parallelize_module(model, mesh, plan).state_dict()


def both(wanted):
    """A mesh of two dimensions: rows of columns."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    state = {}
    for name, tensor in wanted.items():
        placements = [Shard(0), Shard(tensor.dim() - 1)] if tensor.dim() > 1 else [Replicate(), Shard(0)]
        state[name] = distribute_tensor(torch.zeros_like(tensor), mesh, placements)
    return state


def main():
    folder, mode, rank, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    wanted = tc.load(folder, framework="pt", dequantize="bfloat16")
    state = {"fsdp2": fsdp2, "tensor_parallel": tensor_parallel, "both": both}[mode](wanted)
    assert set(state) == set(wanted)
    dcp.load(state, storage_reader=tensorcast.torch.QuantizedReader(folder, threads=1))
    sharded = 0
    for name, tensor in state.items():
        if isinstance(tensor, DTensor):
            sharded += tensor.to_local().numel() < tensor.numel()
            tensor = tensor.full_tensor()
        assert tensor.dtype == wanted[name].dtype and torch.equal(tensor, wanted[name]), name
    assert sharded > 1
    dist.destroy_process_group()


main()
