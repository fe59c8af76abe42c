# SPDX-License-Identifier: Apache-2.0
"""Folders of PyTorch: pytorch_model-*.bin with an index, single files, and torch.distributed.checkpoint's folders. The
files were written by PyTorch 2.13.0; the package itself is not needed."""

import hashlib
import json
import pathlib
import pickle
import shutil
import struct
import sys
import types

import pytest

FORMATS = pathlib.Path(__file__).resolve().parent.parent.parent / "src" / "formats" / "pytorch" / "testdata"
DISTRIBUTED = pathlib.Path(__file__).resolve().parent.parent.parent / "src" / "checkpoint" / "testdata" / "distributed"
EXPECTED = json.loads((FORMATS / "expected.json").read_text())
EXPECTED_DISTRIBUTED = json.loads((DISTRIBUTED / "expected.json").read_text())
SHARDS = ["state_dict", "views"]


def tensors_of(path):
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    data = content[8 + length:]
    return {name: [entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])].hex()]
            for name, entry in header.items()}


def all_tensors(folder):
    found = {}
    for path in sorted(folder.rglob("*.safetensors")):
        tensors = tensors_of(path)
        assert not found.keys() & tensors.keys()
        found |= tensors
    return found


def copy_shard(name, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(FORMATS / "valid" / f"{name}.pt", path)


@pytest.fixture
def folder(tmp_path):
    """Two shards with an index, and files beside them."""
    weight_map = {}
    for number, name in enumerate(SHARDS, 1):
        file = f"pytorch_model-{number:05}-of-00002.bin"
        copy_shard(name, tmp_path / "in" / file)
        weight_map |= dict.fromkeys(EXPECTED[name]["tensors"], file)
    index = {"metadata": {"total_size": 1, "note": "kept"}, "weight_map": weight_map}
    (tmp_path / "in/pytorch_model.bin.index.json").write_text(json.dumps(index))
    (tmp_path / "in/config.json").write_text('{"torch_dtype": "float32"}')
    (tmp_path / "in/training_args.bin").write_bytes(pickle.dumps({"lr": 1}))
    return tmp_path / "in"


def convert(run_tcast, *arguments, **options):
    done = run_tcast("convert", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done


def copied(run_tcast, source, out, *arguments):
    """Converts nothing, so that every byte can be compared."""
    return convert(run_tcast, source, "-o", out, "--to", "float64", "--exclude", ".*", *arguments)


def test_shards_and_their_index(run_tcast, tmp_path, folder):
    copied(run_tcast, "in", "out", "--verify")
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        ".tcast-files.json", "SHA256SUMS", "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
        "model.safetensors.index.json", "training_args.bin"]
    for number, name in enumerate(SHARDS, 1):
        assert tensors_of(out / f"model-{number:05}-of-00002.safetensors") == EXPECTED[name]["tensors"]
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"]["note"] == "kept"
    assert index["metadata"]["total_size"] == sum(len(data) // 2 for _, _, data in all_tensors(out).values())
    assert index["weight_map"]["conjugated"] == "model-00002-of-00002.safetensors"
    assert set(index["weight_map"]) == set(all_tensors(out))
    for line in (out / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert run_tcast("verify", "out", "--against", "in").returncode == 0
    assert run_tcast("diff", "in", "out").returncode == 0


def test_the_index_alone_and_other_layouts(run_tcast, tmp_path, folder):
    copied(run_tcast, "in/pytorch_model.bin.index.json", "out")
    whole = all_tensors(tmp_path / "out")
    assert len(whole) == sum(len(EXPECTED[name]["tensors"]) for name in SHARDS)
    copied(run_tcast, "in", "one", "--output-layout", "single")
    assert [path.name for path in (tmp_path / "one").glob("*.safetensors")] == ["model.safetensors"]
    copied(run_tcast, "in", "many", "--max-shard-size", "100B")
    assert all_tensors(tmp_path / "one") == all_tensors(tmp_path / "many") == whole
    assert "index" in "".join(path.name for path in (tmp_path / "many").iterdir())


def test_inspect_dry_run_and_steps(run_tcast, tmp_path, folder):
    listed = json.loads(run_tcast("inspect", "in", "--json").stdout)
    assert len(listed["shards"]) == 2 and listed["indexes"] == ["pytorch_model.bin.index.json"]
    planned = run_tcast("convert", "in", "-o", "out", "--to", "float16", "--dry-run")
    assert "nothing was written" in planned.stdout and not (tmp_path / "out").exists()
    assert run_tcast("plan", "in", "-o", "out", "--to", "float16").returncode == 0
    assert run_tcast("run-shard", "out", "1").returncode == 0
    done = json.loads(convert(run_tcast, "in", "-o", "out", "--to", "float16", "--json").stdout)
    assert done["resumed"] and done["input_format"] == "pytorch"
    assert run_tcast("verify", "out", "--against", "in").returncode == 0
    assert json.loads((tmp_path / "out/config.json").read_text()) == {"torch_dtype": "float16"}


def test_a_changed_source_is_an_error(run_tcast, tmp_path, folder):
    assert run_tcast("plan", "in", "-o", "out", "--to", "float16").returncode == 0
    shutil.copy(FORMATS / "valid" / "plain.pt", folder / "pytorch_model-00001-of-00002.bin")
    done = run_tcast("run-shard", "out")
    assert done.returncode == 1 and "changed since" in done.stderr


def test_one_file_and_variants(run_tcast, tmp_path):
    copy_shard("state_dict", tmp_path / "in/unet/diffusion_pytorch_model.fp16.bin")
    copy_shard("views", tmp_path / "in/pytorch_model.bin")
    copied(run_tcast, "in", "out")
    assert tensors_of(tmp_path / "out/model.safetensors") == EXPECTED["views"]["tensors"]
    assert tensors_of(tmp_path / "out/unet/diffusion_pytorch_model.fp16.safetensors") == EXPECTED["state_dict"]["tensors"]
    assert run_tcast("verify", "out", "--against", "in").returncode == 0


def test_tied_weights_are_copies(run_tcast, tmp_path):
    copy_shard("strided", tmp_path / "in/pytorch_model.bin")
    copied(run_tcast, "in", "out", "--verify")
    tensors = tensors_of(tmp_path / "out/model.safetensors")
    assert tensors == EXPECTED["strided"]["tensors"] and tensors["tied"] == tensors["tied_again"]


def test_files_beside_safetensors_are_copied(run_tcast, tmp_path):
    copy_shard("views", tmp_path / "in/pytorch_model.bin")
    copied(run_tcast, "in", "made")
    shutil.copy(tmp_path / "made/model.safetensors", tmp_path / "in")
    copied(run_tcast, "in", "out")
    assert (tmp_path / "out/pytorch_model.bin").read_bytes() == (tmp_path / "in/pytorch_model.bin").read_bytes()


def test_saved_files_of_any_name(run_tcast, tmp_path):
    copy_shard("views", tmp_path / "in/consolidated.00.pth")
    copy_shard("plain", tmp_path / "in/steps/latest.pt")
    (tmp_path / "in/notes.bin").write_bytes(b"not of PyTorch")
    done = copied(run_tcast, "in", "out")
    assert tensors_of(tmp_path / "out/consolidated.00.safetensors") == EXPECTED["views"]["tensors"]
    assert tensors_of(tmp_path / "out/steps/latest.safetensors") == EXPECTED["plain"]["tensors"]
    assert (tmp_path / "out/notes.bin").exists()
    assert 'steps/latest.pt: the plain data "step" are not written' in done.stderr


@pytest.mark.parametrize("change, message", [
    (lambda folder: (folder / "pytorch_model-00002-of-00002.bin").unlink(), "which is not there"),
    (lambda folder: (folder / "pytorch_model.bin.index.json").unlink()
     or (folder / "pytorch_model-00001-of-00002.bin").unlink(), "pytorch_model-00001-of-00002.bin"),
    (lambda folder: shutil.copy(FORMATS / "valid/plain.pt", folder / "pytorch_model-00001-of-00002.bin"),
     "does not have it"),
    (lambda folder: shutil.copy(FORMATS / "invalid/unsupported--os-system.pt",
                                folder / "pytorch_model-00001-of-00002.bin"), "posix.system"),
    (lambda folder: ((folder / "pytorch_model-00001-of-00002.bin").unlink(),
                     (folder / "pytorch_model-00001-of-00002.bin").symlink_to(FORMATS / "valid/state_dict.pt")),
     "leads out"),
])
def test_what_is_wrong_is_said(run_tcast, tmp_path, folder, change, message):
    change(folder)
    done = run_tcast("convert", "in", "-o", "out", "--to", "float16")
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", sorted(EXPECTED_DISTRIBUTED))
def test_distributed_checkpoints(run_tcast, tmp_path, name):
    shutil.copytree(DISTRIBUTED / name, tmp_path / "in")
    done = copied(run_tcast, "in", "out", "--verify")
    assert tensors_of(tmp_path / "out/model.safetensors") == EXPECTED_DISTRIBUTED[name]
    assert "epoch" in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".tcast-files.json", "SHA256SUMS", "model.safetensors"]
    copied(run_tcast, "in", "many", "--max-shard-size", "100B")
    assert all_tensors(tmp_path / "many") == EXPECTED_DISTRIBUTED[name]
    assert run_tcast("verify", "many", "--against", "in").returncode == 0
    convert(run_tcast, "in", "-o", "half", "--to", "float16", "--keep-rank", "0,1")
    assert run_tcast("verify", "half", "--against", "in").returncode == 0
    assert run_tcast("diff", "in", "out").returncode == 0
    assert len(json.loads(run_tcast("inspect", "in", "--json").stdout)["tensors"]) == len(EXPECTED_DISTRIBUTED[name])


def test_several_distributed_checkpoints(run_tcast, tmp_path):
    shutil.copytree(DISTRIBUTED / "single", tmp_path / "in/pytorch_model_fsdp_0")
    shutil.copytree(DISTRIBUTED / "ranks", tmp_path / "in/optimizer_0")
    copied(run_tcast, "in", "out")
    for folder, name in (("pytorch_model_fsdp_0", "single"), ("optimizer_0", "ranks")):
        assert tensors_of(tmp_path / "out" / folder / "model.safetensors") == EXPECTED_DISTRIBUTED[name]


class Metadata:
    """A .metadata whose objects can be changed: classes of the names that it has, without PyTorch."""

    def __init__(self, path, monkeypatch):
        self.path = path
        for module in ("torch", "torch.serialization", "torch.distributed", "torch.distributed.checkpoint",
                       "torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"):
            monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
        unpickler = self.unpickler()
        with path.open("rb") as file:
            self.root = unpickler(file).load()
        self.tensors = self.root.__dict__["state_dict_metadata"]
        self.items = self.root.__dict__["storage_data"]

    @staticmethod
    def unpickler():
        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                if not module.startswith("torch"):
                    return super().find_class(module, name)
                if not hasattr(sys.modules[module], name):
                    made = type(name, (Anything,), {"__module__": module, "__qualname__": name})
                    setattr(sys.modules[module], name, made)
                return getattr(sys.modules[module], name)

        return Unpickler

    def item(self, name, number=0):
        """The place of a tensor's chunk."""
        return [item for index, item in self.items.items() if index.__dict__["fqn"] == name][number]

    def save(self):
        self.path.write_bytes(pickle.dumps(self.root))


class Anything:
    """Pickles as it was: its class, its arguments, its state."""

    def __new__(cls, *arguments):
        self = super().__new__(cls)
        self.__dict__["_arguments"] = arguments
        return self

    def __setstate__(self, state):
        self.__dict__.update(state if isinstance(state, dict) else {"_tuple": state})

    def __reduce__(self):
        state = {key: value for key, value in self.__dict__.items() if not key.startswith("_")}
        return type(self), self._arguments, self.__dict__.get("_tuple") or state or None


def with_size(size, *values):
    return type(size)(tuple(values))


def chunks_of(metadata, name):
    return metadata.tensors[name].__dict__["chunks"]


def drop_chunk(metadata):
    chunks_of(metadata, "model.rows").pop()


def repeat_chunk(metadata):
    chunks_of(metadata, "model.rows")[1] = chunks_of(metadata, "model.rows")[0]


def grow_tensor(metadata):
    tensor = metadata.tensors["model.rows"].__dict__
    tensor["size"] = with_size(tensor["size"], 1 << 40, 12)


def overflow_tensor(metadata):
    tensor = metadata.tensors["model.rows"].__dict__
    tensor["size"] = with_size(tensor["size"], 1 << 62, 1 << 62)


def move_chunk(metadata):
    chunk = chunks_of(metadata, "model.rows")[3].__dict__
    chunk["sizes"] = with_size(chunk["sizes"], 1 << 62, 12)


def swap_types(metadata):
    rows, columns = (metadata.tensors[f"model.{name}"].__dict__ for name in ("rows", "columns"))
    rows["properties"], columns["properties"] = columns["properties"], rows["properties"]


HOSTILE = {
    "a chunk is missing": (drop_chunk, "are in no chunk"),
    "chunks overlap": (repeat_chunk, "overlap"),
    "a tensor of a terabyte": (grow_tensor, "are in no chunk"),
    "a shape that overflows": (overflow_tensor, "damaged"),
    "a chunk beyond its tensor": (move_chunk, "reaches out of its tensor"),
    "a place beyond the file": (lambda m: m.item("model.rows").__dict__.update(offset=1 << 62), "beyond the end"),
    "a length beyond the file": (lambda m: m.item("model.rows").__dict__.update(length=(1 << 63) - 1), "beyond the end"),
    "a negative place": (lambda m: m.item("model.rows").__dict__.update(offset=-1), "not a number"),
    "the place of another chunk": (lambda m: m.item("model.rows").__dict__.update(m.item("model.few").__dict__),
                                   "is not what .metadata says"),
    "no place": (lambda m: [m.items.pop(key) for key in list(m.items) if key.__dict__["fqn"] == "model.rows"],
                 "without a place"),
    "a path that climbs": (lambda m: m.item("model.rows").__dict__.update(relative_path="../../etc/passwd"), "goes up"),
    "an absolute path": (lambda m: m.item("model.rows").__dict__.update(relative_path="/etc/passwd"), "absolute"),
    "a missing file": (lambda m: m.item("model.rows").__dict__.update(relative_path="__9_0.distcp"), "__9_0.distcp"),
    "other types": (swap_types, "is not what .metadata says"),
    "compressed": (lambda m: m.item("model.rows").__dict__.update(transform_descriptors=["zstd"]), "compressed"),
    "not a dict": (lambda m: m.root.__dict__.update(state_dict_metadata=[1]), "does not say where"),
    "another object": (lambda m: setattr(m, "root", [1, 2]), "not that of torch.distributed"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_metadata_that_lie(run_tcast, tmp_path, monkeypatch, name):
    change, message = HOSTILE[name]
    shutil.copytree(DISTRIBUTED / "ranks", tmp_path / "in")
    metadata = Metadata(tmp_path / "in/.metadata", monkeypatch)
    metadata.save()
    copied(run_tcast, "in", "out")  # pickled again it is the same
    assert tensors_of(tmp_path / "out/model.safetensors") == EXPECTED_DISTRIBUTED["ranks"]
    change(metadata)
    metadata.save()
    done = run_tcast("convert", "in", "-o", "wrong", "--to", "float16")
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert not (tmp_path / "wrong").exists()


def test_links_out_of_a_distributed_checkpoint(run_tcast, tmp_path):
    shutil.copytree(DISTRIBUTED / "ranks", tmp_path / "in")
    (tmp_path / "in/__1_0.distcp").unlink()
    (tmp_path / "in/__1_0.distcp").symlink_to(DISTRIBUTED / "ranks/__1_0.distcp")
    done = run_tcast("convert", "in", "-o", "out", "--to", "float16")
    assert done.returncode == 1 and "leads out" in done.stderr


def test_metadata_that_run_programs(run_tcast, tmp_path):
    shutil.copytree(DISTRIBUTED / "single", tmp_path / "in")
    (tmp_path / "in/.metadata").write_bytes(b"cposix\nsystem\n(S'touch run'\ntR.")
    done = run_tcast("convert", "in", "-o", "out", "--to", "float16")
    assert done.returncode == 1 and "posix.system" in done.stderr and not (tmp_path / "run").exists()
