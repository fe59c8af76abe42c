# SPDX-License-Identifier: Apache-2.0
"""Folders of safetensors files: converted, listed, opened, in steps and as a whole; state_dicts with rules."""

import hashlib
import json
import pathlib
from collections import OrderedDict

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
import torch
import torch.distributed.checkpoint

import tensorcast as tc
from tensorcast import checkpoint


def write_checkpoint(folder):
    """Three shards with an index, as transformers writes them; returns the tensors."""
    random = np.random.default_rng(3)
    shards = [
        {"embed.weight": random.normal(size=(64, 16)).astype(np.float32)},
        {
            "layers.0.mlp.weight": random.normal(size=(32, 16)).astype(np.float32),
            "layers.0.norm.weight": np.ones(16, np.float32),
        },
        {"lm_head.weight": random.normal(size=(64, 16)).astype(np.float32), "steps": np.int64([3])},
    ]
    folder.mkdir(parents=True)
    names = [f"model-{i + 1:05}-of-00003.safetensors" for i in range(3)]
    for name, tensors in zip(names, shards):
        safetensors.numpy.save_file(tensors, folder / name, metadata={"format": "pt"})
    weight_map = {tensor: name for name, tensors in zip(names, shards) for tensor in tensors}
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text('{"torch_dtype": "float32", "hidden_size": 16}')
    (folder / "tokenizer.json").write_text("{}")
    return {name: array for tensors in shards for name, array in tensors.items()}


@pytest.fixture
def source(tmp_path):
    return tmp_path / "model", write_checkpoint(tmp_path / "model")


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.name != ".tcast-files.json"}


def test_convert_and_open(source, tmp_path):
    folder, tensors = source
    seen = []
    done = tc.convert(
        folder, tmp_path / "out", "bfloat16", rules={"lm_head": "float16"}, keep_rank=1, report=True,
        progress=lambda *now: seen.append(now),
    )  # fmt: skip
    rows = {row.name: row for row in done.tensors}
    assert [rows[name].to for name in tensors] == ["bfloat16", "bfloat16", "float32", "float16", "int64"]
    assert rows["layers.0.norm.weight"].reason == "rank 1" and rows["embed.weight"].report.count == 1024
    assert rows["embed.weight"].file == "model-00001-of-00003.safetensors"
    assert [shard.tensors for shard in done.shards] == [1, 2, 2] and seen[-1][0] == seen[-1][1]
    for shard in done.shards:
        assert shard.sha256 == hashlib.sha256((tmp_path / "out" / shard.file).read_bytes()).hexdigest()
    assert "tokenizer.json" in done.copied_files and "config.json" in done.rewritten_files
    assert json.loads((tmp_path / "out/config.json").read_text())["torch_dtype"] == "bfloat16"
    assert json.loads(done.to_json())["shards"][0]["tensors"] == 1

    for path in (tmp_path / "out", tmp_path / "out/model.safetensors.index.json"):
        with tc.open(path) as opened:
            assert isinstance(opened, tc.TensorFolder) and set(opened) == {*tensors} and "x" not in opened
            assert opened.metadata == {"format": "pt"} and len(opened) == 5 and len(opened.info.shards) == 3
            for name, array in tensors.items():
                assert np.array_equal(opened[name], tc.cast(array, rows[name].to)), name
            with pytest.raises(KeyError):
                opened["x"]
        with pytest.raises(ValueError, match="closed"):
            opened["steps"]
    assert tc.load(tmp_path / "out").keys() == tensors.keys()

    found = tc.inspect(tmp_path / "out")
    assert isinstance(found, tc.CheckpointInfo) and found.format == "checkpoint"
    kinds = {row.name: row.kind for row in found.tensors}
    assert kinds["embed.weight"] == "embedding" and kinds["lm_head.weight"] == "head"
    assert {file.name for file in found.other_files} == {"config.json", "tokenizer.json", "SHA256SUMS"}
    stats = {row.name: row.stats for row in tc.inspect(folder, stats=True, candidates=["float16"]).tensors}
    assert stats["layers.0.norm.weight"].max == 1 and stats["embed.weight"].candidates["float16"].count == 1024

    differences = {row.name: row for row in checkpoint.diff(folder, tmp_path / "out")}
    assert differences["steps"].equal and not differences["embed.weight"].equal
    assert (differences["embed.weight"].from_, differences["embed.weight"].to) == ("float32", "bfloat16")
    assert 0 < differences["embed.weight"].max_rel_error <= 2**-8
    verified = checkpoint.verify(tmp_path / "out", against=folder)
    assert (verified.files, verified.tensors) == (6, 5)


def test_few_shards_are_open_at_a_time(source, monkeypatch):
    folder, tensors = source
    monkeypatch.setattr(tc.TensorFolder, "_most_open", 1)
    with tc.open(folder) as opened:
        for name in [*tensors, *reversed(tensors)]:
            assert np.array_equal(opened[name], tensors[name])
            assert len(opened._open) == 1


def test_folders_of_several_models(tmp_path):
    for part in ("unet", "text_encoder"):
        (tmp_path / "pipe" / part).mkdir(parents=True)
        array = np.full(3, len(part), np.float32)
        safetensors.numpy.save_file({"w": array}, tmp_path / "pipe" / part / "model.safetensors")
    safetensors.numpy.save_file({"w": np.zeros(3, np.float32)}, tmp_path / "pipe/unet/model.fp16.safetensors")
    with tc.open(tmp_path / "pipe") as opened:
        assert set(opened) == {"unet/w", "unet/fp16:w", "text_encoder/w"}
        assert opened["unet/w"][0] == 4 and opened["unet/fp16:w"][0] == 0 and opened["text_encoder/w"][0] == 12
    safetensors.numpy.save_file({"w": np.zeros(3, np.float32)}, tmp_path / "pipe/unet/other.safetensors")
    with pytest.raises(tc.CastError, match="both have a tensor 'unet/w'"):
        tc.open(tmp_path / "pipe")


def test_steps_equal_one_call(source, tmp_path):
    folder, _ = source
    tc.convert(folder, tmp_path / "whole", "float16")
    planned = checkpoint.plan(folder, tmp_path / "steps", "float16")
    assert [shard.sha256 for shard in planned.shards] == ["", "", ""] and not planned.resumed
    with pytest.raises(tc.CastError, match="3 of 3 shards are not converted yet") as unfinished:
        checkpoint.finish(tmp_path / "steps")
    assert "tensorcast.checkpoint.run_shard()" in str(unfinished.value)
    first = checkpoint.run_shard(tmp_path / "steps", 1)
    assert [shard.file for shard in first.shards] == ["model-00002-of-00003.safetensors"]
    odd = checkpoint.run_shard(tmp_path / "steps" / "plan.json", shard_of=(1, 2))
    assert [shard.done_before for shard in odd.shards] == [True]
    assert [bool(shard.sha256) for shard in checkpoint.status(tmp_path / "steps").shards] == [False, True, False]
    checkpoint.run_shard(tmp_path / "steps", [0, 2])
    assert all(shard.done_before for shard in checkpoint.status(tmp_path / "steps").shards)
    checkpoint.finish(tmp_path / "steps")
    assert files_of(tmp_path / "steps") == files_of(tmp_path / "whole")
    for wrong in ({"shards": 3}, {"shards": -1}, {"shard_of": (2, 2)}, {"shards": []}):
        checkpoint.plan(folder, tmp_path / "again", "float16")
        with pytest.raises(tc.CastError):
            checkpoint.run_shard(tmp_path / "again", **wrong)


def test_progress_cancels_and_the_same_call_goes_on(source, tmp_path):
    folder, _ = source

    def until_second(done, total, tensor):
        return not tensor.startswith("layers")

    with pytest.raises(tc.Cancelled, match="shards are kept"):
        tc.convert(folder, tmp_path / "out", "bfloat16", threads=1, progress=until_second)  # one shard after the other
    with pytest.raises(ZeroDivisionError):
        tc.convert(folder, tmp_path / "out", "bfloat16", threads=1, progress=lambda *now: 1 // 0)
    done = tc.convert(folder, tmp_path / "out", "bfloat16")
    assert done.resumed and [shard.done_before for shard in done.shards] == [True, False, False]


def test_options_of_folders(source, tmp_path):
    folder, _ = source
    dry = tc.convert(folder, tmp_path / "out", "float8_e4m3fn", preset="weights-only", dry_run=True)
    assert {row.name for row in dry.tensors if row.to == "float8_e4m3fn"} == {"layers.0.mlp.weight"}
    assert dry.requirements.disk_bytes > 0 and dry.requirements.seconds > 0
    assert not (tmp_path / "out").exists()
    one = tc.convert(folder, tmp_path / "one", "float16", single_file=True)
    assert [shard.file for shard in one.shards] == ["model.safetensors"]
    for wrong in ("0", "2XB", 0, True):
        with pytest.raises(tc.CastError, match='max_shard_size=.* is not a size; write "5GB", "512MiB" or a number of bytes'):
            tc.convert(folder, tmp_path / "cut", max_shard_size=wrong)
    cut = tc.convert(folder, tmp_path / "cut", max_shard_size="2KiB")
    assert len(cut.shards) == 4 and all(row.from_ == row.to for row in cut.tensors)
    kept = tc.convert(folder, tmp_path / "kept", "float16", rules=[tc.Rule(rank=2, smaller=1000)], dry_run=True)
    assert {row.name for row in kept.tensors if row.reason == "rule 1"} == {"layers.0.mlp.weight"}
    for wrong in ({"max_shard_size": "5 parsecs"}, {"preset": "best"}, {"max_shard_size": 0}, {"to": None}):
        with pytest.raises(tc.CastError):
            tc.convert(folder, tmp_path / "out", **{"to": "float16", **wrong})
    with pytest.raises(tc.CastError, match="folders"):
        tc.convert(folder / "model-00001-of-00003.safetensors", tmp_path / "x.safetensors", "float16", single_file=True)


def test_verify_finds_a_changed_byte(source, tmp_path):
    folder, _ = source
    tc.convert(folder, tmp_path / "out", "float16")
    shard = tmp_path / "out/model-00002-of-00003.safetensors"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(tc.CastError, match="SHA-256") as caught:
        checkpoint.verify(tmp_path / "out")
    assert pathlib.Path(caught.value.file).name == shard.name
    (tmp_path / "out/SHA256SUMS").unlink()
    with pytest.raises(tc.CastError) as caught:
        checkpoint.verify(tmp_path / "out", against=folder)
    assert caught.value.tensor


def test_cast_of_a_mapping(source):
    _, tensors = source
    cast = tc.cast({**tensors, "note": "text", "count": 3}, "bfloat16", rules={"head": "float16", "embed": None})
    assert {name: getattr(value, "dtype", None) for name, value in cast.items()} == {
        "embed.weight": np.float32, "layers.0.mlp.weight": ml_dtypes.bfloat16,
        "layers.0.norm.weight": ml_dtypes.bfloat16, "lm_head.weight": np.float16, "steps": np.int64,
        "note": None, "count": None,
    }  # fmt: skip
    assert cast["note"] == "text" and np.array_equal(cast["embed.weight"], tensors["embed.weight"])
    assert not np.shares_memory(cast["embed.weight"], tensors["embed.weight"])
    same = tc.cast(tensors, "bfloat16", exclude="embed", copy=False)
    assert same["embed.weight"] is tensors["embed.weight"] and same["steps"] is tensors["steps"]
    result, reports = tc.cast(tensors, "float8_e4m3fn", preset="weights-only", report=True)
    assert list(reports) == ["layers.0.mlp.weight"] and reports["layers.0.mlp.weight"].count == 512
    assert result["lm_head.weight"].dtype == np.float32
    only = tc.cast(tensors, None, rules=[tc.Rule("weight", "float16", rank=(2,), smaller=600)])
    assert [a.dtype.name for a in only.values()] == ["float32", "float16", "float32", "float32", "int64"]
    assert tc.cast(tensors, "int8", include="mlp", scale=10, out_of_range="saturate")["layers.0.mlp.weight"].max() > 9


def test_mistakes_with_mappings():
    weights = {"a.weight": np.float32([1, 1e9]), "b": np.float32([1])}
    for wrong in ({"rules": {"c": "int8"}}, {"include": "c"}, {"rules": {"(": "int8"}}, {"preset": "x"}):
        with pytest.raises(tc.CastError):
            tc.cast(weights, "float16", **wrong)
    with pytest.raises(tc.CastError, match="no type"):
        tc.cast(weights, None)
    with pytest.raises(tc.OutOfRangeError, match="tensor 'a.weight'") as caught:
        tc.cast(weights, "int8", out_of_range="error")
    assert (caught.value.tensor, caught.value.index) == ("a.weight", 1)
    with pytest.raises(tc.OutOfRangeError, match="tensor 'model.a.weight'"):
        tc.cast({"model": weights}, "int8", out_of_range="error")
    with pytest.raises(TypeError, match="rules= chooses tensors of a mapping"):
        tc.cast(weights["b"], "float16", rules={"b": "int8"})
    with pytest.raises(TypeError, match="unexpected keyword"):
        tc.cast(weights, "float16", satruate=True)
    with pytest.raises(TypeError, match="out="):
        tc.cast(weights, "float16", out=weights["b"])
    scaled = {"w.weight": np.zeros(4, ml_dtypes.float8_e4m3fn), "w.weight_scale_inv": np.float32([2])}
    with pytest.raises(tc.UnsupportedError, match="raw_codes=True"):
        tc.cast(scaled, "bfloat16")
    assert tc.cast(scaled, "bfloat16", raw_codes=True)["w.weight"].dtype == ml_dtypes.bfloat16


def test_cast_of_a_state_dict_keeps_tied_tensors():
    parts = {"embed": torch.nn.Embedding(8, 4), "norm": torch.nn.BatchNorm1d(4), "head": torch.nn.Linear(4, 8)}
    model = torch.nn.Sequential(OrderedDict(parts))
    model.head.weight = model.embed.weight
    state = model.state_dict()
    half = tc.cast(state, "bfloat16", keep_rank=(0, 1))
    assert type(half) is type(state) and half._metadata == state._metadata and half._metadata is not None
    assert half["embed.weight"].data_ptr() == half["head.weight"].data_ptr()
    assert half["embed.weight"].dtype == torch.bfloat16 and half["head.bias"].dtype == torch.float32
    assert torch.equal(half["embed.weight"], state["embed.weight"].to(torch.bfloat16))
    assert half["norm.num_batches_tracked"].dtype == torch.int64
    model.load_state_dict(half)
    foreign = tc.cast({"z": torch.zeros(2, dtype=torch.complex64), "w": torch.ones(2)}, "float16")
    assert foreign["z"].dtype == torch.complex64 and foreign["w"].dtype == torch.float16
    with pytest.raises(tc.UnsupportedError):
        tc.cast({"z": torch.zeros(2, dtype=torch.complex64)}, None, rules={"z": "float16"})


def test_views_of_one_memory_that_show_other_numbers_are_not_tied():
    pairs = torch.complex(torch.ones(3), torch.arange(3.0))
    done = tc.cast({"a": pairs.imag, "b": pairs.conj().imag, "z": pairs, "conj": pairs.conj()}, "float16")
    assert done["a"].tolist() == [0, 1, 2] and done["b"].tolist() == [0, -1, -2]
    assert torch.equal(done["z"], pairs) and torch.equal(done["conj"], pairs.conj())


@pytest.mark.parametrize("to_odd", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, lambda x: torch.nested.nested_tensor([x, x])])
def test_a_tensor_that_is_not_dense_can_be_left_out(to_odd, tmp_path):
    state = {"odd": to_odd(torch.eye(2)), "w": torch.ones(2)}
    with pytest.raises(TypeError, match="tensor 'odd': "):
        tc.cast(state, "float16")
    done = tc.cast(state, "float16", exclude="^odd$")
    assert done["w"].dtype == torch.float16 and done["odd"].layout == state["odd"].layout
    with pytest.raises(TypeError, match="tensor 'odd': "):
        tc.save(tmp_path / "x.npz", state)


def test_urls(source, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory", skip_instance_cache=True)
    folder, _ = source
    tc.convert(folder, tmp_path / "expected", "bfloat16")
    memory.put(str(folder), "/test_urls/model", recursive=True)
    tc.convert("memory://test_urls/model", "memory://test_urls/out", "bfloat16", verify=True)
    found = {pathlib.PurePosixPath(name).name: memory.cat_file(name) for name in memory.find("/test_urls/out")
             if not name.endswith("/.tcast-files.json")}
    assert found == {str(name): content for name, content in files_of(tmp_path / "expected").items()}
    assert checkpoint.verify("memory://test_urls/out", against=folder).tensors == 5
    assert len(tc.inspect("memory://test_urls/out").tensors) == 5
    tc.convert("memory://test_urls/out", tmp_path / "here", "float32")
    assert tc.open(tmp_path / "here")["embed.weight"].dtype == np.float32
    with pytest.raises(FileExistsError):
        tc.convert(folder, "memory://test_urls/out", "bfloat16")
    with pytest.raises(FileNotFoundError):
        tc.convert("memory://test_urls/none.safetensors", tmp_path / "x.npz", "float16")
    with pytest.raises(tc.UnsupportedError, match="copy the folder first"):
        tc.open("memory://test_urls/out")
    memory.rm("/test_urls", recursive=True)


def test_folders_of_pytorch(tmp_path):
    names = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
    shards = [{"embed": torch.randn(4, 3).to(torch.bfloat16), "tied": torch.randn(8, 4).T}, {"head": torch.randn(3, 4)}]
    for name, tensors in zip(names, shards):
        torch.save(tensors, tmp_path / name)
    weights = {name: tensor for tensors in shards for name, tensor in tensors.items()}
    with tc.open(tmp_path, framework="pt") as opened:
        assert sorted(opened) == sorted(weights)
        assert all(torch.equal(opened[name], tensor) for name, tensor in weights.items())
        assert torch.equal(opened.get_slice("tied")[1:3], weights["tied"][1:3])
    found = tc.inspect(tmp_path, stats=True)
    assert {row.name: row.stats.max for row in found.tensors} == {n: float(t.max()) for n, t in weights.items()}


def test_a_folder_of_one_tensor(tmp_path):
    torch.save(torch.arange(3.0), tmp_path / "alone.pt")
    with tc.open(tmp_path) as opened:
        assert opened["alone"].tolist() == [0, 1, 2]
    assert tc.inspect(tmp_path, stats=True).tensors[0].stats.max == 2


def test_elements_of_distributed_checkpoints_are_read_by_conversions(tmp_path):
    torch.distributed.checkpoint.save({"weight": torch.ones(4, 4)}, checkpoint_id=tmp_path / "step")
    assert [row.name for row in tc.inspect(tmp_path / "step").tensors] == ["weight"]
    for call in (tc.open, lambda folder: tc.inspect(folder, stats=True)):
        with pytest.raises(tc.UnsupportedError, match="only read by convert"):
            call(tmp_path / "step")
    tc.convert(tmp_path / "step", tmp_path / "out", "float16")
    assert tc.open(tmp_path / "out")["weight"].dtype == np.float16


def test_drop_only_and_rename(source, tmp_path):
    folder, _ = source
    choice = {"drop": "steps|head", "rename": {r"^layers\.(\d+)": r"h.\1"}, "skip_files": "token*"}
    done = tc.convert(folder, tmp_path / "out", "bfloat16", **choice)
    rows = {row.name: row.output_name for row in done.tensors}
    assert rows == {
        "embed.weight": "embed.weight",
        "layers.0.mlp.weight": "h.0.mlp.weight",
        "layers.0.norm.weight": "h.0.norm.weight",
    }
    with tc.open(tmp_path / "out") as opened:
        assert set(opened) == {*rows.values()}
    assert not (tmp_path / "out/tokenizer.json").exists()
    assert checkpoint.verify(tmp_path / "out", against=folder, **choice).tensors == 3
    with pytest.raises(tc.CastError):
        checkpoint.verify(tmp_path / "out", against=folder)
    assert all(row.in_a and row.in_b for row in checkpoint.diff(folder, tmp_path / "out", **choice))
    planned = checkpoint.plan(folder, tmp_path / "steps", "bfloat16", **choice)
    assert [row.output_name for row in planned.tensors] == [*rows.values()]
    checkpoint.run_shard(tmp_path / "steps")
    checkpoint.finish(tmp_path / "steps")
    assert files_of(tmp_path / "steps") == files_of(tmp_path / "out")
    with pytest.raises(tc.CastError, match="both be named"):
        tc.convert(folder, tmp_path / "no", rename={".*": "w"})


def test_one_tensor_and_one_file_of_a_folder(source, tmp_path):
    folder, tensors = source
    tc.convert(folder, tmp_path / "head.npy", only="lm_head")
    assert np.array_equal(np.load(tmp_path / "head.npy"), tensors["lm_head.weight"])
    tc.convert(folder, tmp_path / "all.safetensors", single_file=True)
    assert {*safetensors.numpy.load_file(tmp_path / "all.safetensors")} == {*tensors}
    with pytest.raises(tc.CastError, match="single_file=True"):
        tc.convert(folder, tmp_path / "no.safetensors", "bfloat16")


def test_quantized_layers_get_another_spelling(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    random = np.random.default_rng(7)
    codes = random.integers(0, 120, (8, 64), dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    scales = random.integers(100, 140, (8, 2), dtype=np.uint8)
    tc.save(source / "model.safetensors", {"a.weight": codes, "a.weight_scale_inv": scales})
    config = {"quantization_config": {"quant_method": "mxfp8", "weight_block_size": [1, 32]}}
    (source / "config.json").write_text(json.dumps(config))
    there, back = tmp_path / "ct", tmp_path / "back"
    tc.convert(source, there, respell="compressed-tensors", verify=True)
    written = tc.load(there / "model.safetensors")
    assert np.array_equal(written["a.weight_scale"], scales)
    section = json.loads((there / "config.json").read_text())["quantization_config"]
    assert section["format"] == "mxfp8-quantized"
    tc.convert(there, back, respell="transformers-mxfp8", exact=True)
    for name, array in tc.load(source / "model.safetensors").items():
        assert tc.load(back / "model.safetensors")[name].tobytes() == array.tobytes()
    with pytest.raises(tc.CastError, match="not a spelling"):
        tc.convert(source, tmp_path / "no", respell="acme")
    with pytest.raises(tc.CastError, match="respell"):
        tc.convert(source, tmp_path / "no", "bfloat16", respell="modelopt")
