#!/usr/bin/env python3
"""Writes the distributed checkpoints of this folder with PyTorch 2.13.0, and expected.json with what PyTorch reads.

generate.py            writes all folders again
generate.py --check    fails unless PyTorch reads from them what expected.json says
"""

import datetime
import json
import os
import pathlib
import shutil
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
RANKS = 4


def state(torch):
    base = torch.arange(48, dtype=torch.float32)
    return {"model": {"layers.0.weight": base.reshape(6, 8), "layers.0.bias": base[:6].bfloat16(),
                      "norm": {"scale": torch.tensor(1.5)}, "codes": torch.arange(16, dtype=torch.uint8)
                      .view(torch.float8_e4m3fn).reshape(4, 4), "packed": torch.arange(12, dtype=torch.uint8)
                      .view(torch.float4_e2m1fn_x2).reshape(3, 4), "counts": torch.tensor([1, -2]),
                      "transposed": base.reshape(6, 8).t(), "empty": torch.empty(0, 3)},
            "optimizer": {"state": {0: {"step": torch.tensor(3.0), "exp_avg": base[8:16]}},
                          "param_groups": [{"lr": 0.125, "params": [0]}]},
            "epoch": 3, "note": "é", "list": [torch.ones(2), 7]}


def save_single(torch, folder):
    import torch.distributed.checkpoint as dcp

    dcp.save(state(torch), checkpoint_id=folder, no_dist=True)


def save_rank(rank, folder, store):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=60))
    line = init_device_mesh("cpu", (RANKS,))
    square = init_device_mesh("cpu", (2, 2))
    base = torch.arange(120, dtype=torch.float32)
    values = {"rows": distribute_tensor(base.reshape(10, 12), line, [Shard(0)]),
              "columns": distribute_tensor(base.reshape(10, 12).half(), line, [Shard(1)]),
              "tiles": distribute_tensor(base.reshape(5, 24).bfloat16(), square, [Shard(0), Shard(1)]),
              "deep": distribute_tensor(base.reshape(2, 5, 12), square, [Shard(2), Shard(1)]),
              "few": distribute_tensor(base[:3].reshape(3, 1), line, [Shard(0)]),
              "replicated": distribute_tensor(base[:6], line, [Replicate()]),
              "plain": base[6:10], "epoch": 5}
    dcp.save({"model": values}, checkpoint_id=folder)
    dist.destroy_process_group()


def save_ranks(torch, folder):
    with tempfile.TemporaryDirectory() as store:
        torch.multiprocessing.spawn(save_rank, (folder, f"{store}/store"), nprocs=RANKS)


def expectation(torch, folder):
    """What PyTorch's own dcp_to_torch_save makes of a folder: tensors by name as [type, shape, bytes]."""
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

    sys.path.insert(0, str(FOLDER.parent.parent.parent / "formats" / "pytorch" / "testdata"))
    import generate as formats

    with tempfile.TemporaryDirectory() as temporary:
        dcp_to_torch_save(folder, f"{temporary}/all.pt")
        return formats.expectation(torch, torch.load(f"{temporary}/all.pt", weights_only=False))["tensors"]


def main():
    import torch

    assert torch.__version__.split("+")[0] == "2.13.0", torch.__version__
    check = "--check" in sys.argv
    os.chdir(FOLDER)  # the path is written into the files
    expected = {}
    for name, save in (("single", save_single), ("ranks", save_ranks)):
        if not check:
            shutil.rmtree(name, ignore_errors=True)
            save(torch, name)
        expected[name] = expectation(torch, name)
    if check:
        assert json.loads((FOLDER / "expected.json").read_text()) == json.loads(json.dumps(expected))
        return
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in expected.items()]
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main()
