# SPDX-License-Identifier: Apache-2.0
"""QuantizedReader: quantized checkpoints that torch.distributed.checkpoint loads."""

import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest
from checkpoint_samples import write_deepseek

import tensorcast as tc

torch = pytest.importorskip("torch")
dcp = pytest.importorskip("torch.distributed.checkpoint")
tc_torch = pytest.importorskip("tensorcast.torch")
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "cli"))
from quantized_models import MODELS  # noqa: E402

HERE = pathlib.Path(__file__).parent


def zeros(wanted, **changes):
    return {name: torch.zeros(tensor.shape, **{"dtype": tensor.dtype, **changes}) for name, tensor in wanted.items()}


def load(state, folder, *arguments, **keywords):
    dcp.load(state, storage_reader=tc_torch.QuantizedReader(folder, *arguments, **keywords), no_dist=True)
    return state


@pytest.mark.parametrize("name", MODELS)
def test_every_layout(name, tmp_path):
    MODELS[name][0]().write(tmp_path / "model", shards=3)
    for dtype in (torch.bfloat16, torch.float32):
        wanted = tc.load(tmp_path / "model", framework="pt", dequantize=dtype)
        state = zeros(wanted)
        addresses = {key: tensor.data_ptr() for key, tensor in state.items()}
        load(state, tmp_path / "model", dtype)
        assert state.keys() == wanted.keys()
        for key, tensor in state.items():
            assert torch.equal(*(each.reshape(-1).view(torch.uint8) for each in (tensor, wanted[key]))), key
            assert tensor.data_ptr() == addresses[key]


def test_other_types_and_layouts_of_memory(tmp_path):
    wanted = tc.load(write_deepseek(tmp_path / "m"), framework="pt", dequantize="bfloat16")
    state = load(zeros(wanted, dtype=torch.float32), tmp_path / "m")
    assert all(torch.equal(state[name], wanted[name].float()) for name in wanted)
    turned = {name: torch.zeros(tensor.shape[::-1], dtype=tensor.dtype).T for name, tensor in wanted.items()}
    load(turned, tmp_path / "m")
    assert all(torch.equal(turned[name], wanted[name]) for name in wanted)
    model = {name: torch.nn.Parameter(tensor) for name, tensor in zeros(wanted).items()}
    load(model, tmp_path / "m")
    assert all(torch.equal(model[name], wanted[name]) for name in wanted)


def test_tied_tensors(tmp_path):
    folder = write_deepseek(tmp_path / "m")
    state = {"lm_head.weight": torch.zeros(96, 256, dtype=torch.bfloat16)}
    state["model.embed_tokens.weight"] = state["lm_head.weight"]
    wanted = tc.load(folder, framework="pt")["model.embed_tokens.weight"]
    assert torch.equal(load(state, folder)["lm_head.weight"], wanted)
    untied = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(untied | {"tie_word_embeddings": False}))
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: lm_head.weight"):
        load(state, folder)


def test_renamed_tensors(tmp_path):
    folder = write_deepseek(tmp_path / "m")
    wanted = tc.load(folder, framework="pt", dequantize="bfloat16")
    for rename in (lambda name: name.removeprefix("model."), {name: name.removeprefix("model.") for name in wanted}):
        state = load({name.removeprefix("model."): tensor for name, tensor in zeros(wanted).items()}, folder, rename=rename)
        assert all(torch.equal(tensor, wanted[f"model.{name}"]) for name, tensor in state.items())
    twice = {"model.embed_tokens.weight": ("a", "b")}
    state = load({name: torch.zeros(96, 256, dtype=torch.bfloat16) for name in "ab"}, folder, rename=twice)
    assert torch.equal(state["a"], state["b"]) and torch.equal(state["a"], wanted["model.embed_tokens.weight"])
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: model.embed"):
        load(zeros(wanted), folder, rename=lambda name: None if "embed" in name else name)
    with pytest.raises(CheckpointException, match="are both 'same' by rename="):
        load({"same": torch.zeros(1)}, folder, rename=lambda name: "same")


def test_what_does_not_fit(tmp_path):
    folder = write_deepseek(tmp_path / "m")
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: other"):
        load({"other": torch.zeros(1)}, folder)
    with pytest.raises(CheckpointException, match="Missing key in checkpoint state_dict: model.layers.0.up_proj.weight_scale_inv"):
        load({"model.layers.0.up_proj.weight_scale_inv": torch.zeros(3, 2)}, folder)
    with pytest.raises(CheckpointException, match="Size mismatch"):
        load({"model.embed_tokens.weight": torch.zeros(95, 256)}, folder)
    with pytest.raises(TypeError, match="floating-point types of 8 bits or more, not torch.int8"):
        tc_torch.QuantizedReader(folder, torch.int8)
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "aqlm"}}')
    with pytest.raises(CheckpointException, match='"aqlm", which is not decoded'):
        load({"model.embed_tokens.weight": torch.zeros(96, 256)}, folder)


def test_one_file_and_another_one(tmp_path):
    for i in range(2):
        header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"w", 1, 32, 8, 0)
        (tmp_path / f"{i}.gguf").write_bytes(header.ljust(64, b"\0") + np.float16(i + 1).tobytes() + bytes(range(32)))
    reader = tc_torch.QuantizedReader(tmp_path / "0.gguf", torch.float32)
    for i in range(2):
        state = {"w": torch.zeros(32)}
        dcp.load(state, checkpoint_id=tmp_path / f"{i}.gguf", storage_reader=reader, no_dist=True)
        assert state["w"].tolist() == [code * (i + 1) for code in range(32)]


@pytest.mark.parametrize("mode", ["fsdp2", "tensor_parallel", "both"])
def test_four_ranks(mode, tmp_path):
    folder = write_deepseek(tmp_path / "m")
    command = [sys.executable, HERE / "checkpoint_ranks.py", folder, mode]
    ranks = [subprocess.Popen([*command, str(rank), tmp_path / "store"], stderr=subprocess.PIPE, text=True) for rank in range(4)]
    for rank in ranks:
        _, errors = rank.communicate()
        assert rank.returncode == 0, errors
