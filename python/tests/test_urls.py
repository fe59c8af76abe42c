# SPDX-License-Identifier: Apache-2.0
"""Files behind URLs, on stores that fail or change."""

import errno

import numpy as np
import pytest

import tensorcast as tc
from tensorcast._files import _remote

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFile, MemoryFileSystem


class Server(MemoryFileSystem):
    """As the file system for HTTP: a file has an entity tag, and may lack a size, or ranges."""

    protocol = "server"
    files: dict = {}  # name: content, and what replaces it after that many reads
    reads = 0
    sized = ranges = True

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("server://")

    def _content(self, path):
        content, later, after = type(self).files[path]
        return later if type(self).reads >= after else content

    def info(self, path, **_):
        if path not in self.files:
            raise FileNotFoundError(path)
        content = self._content(path)
        return {"name": path, "type": "file", "size": len(content) if self.sized else None, "ETag": str(hash(content))}

    def isdir(self, path):
        return False

    def find(self, path, **_):
        return {}

    def cat_file(self, path, start=None, end=None, **_):
        content = self._content(path)
        type(self).reads += 1
        return content[start:end] if self.ranges else content


@pytest.fixture
def server(monkeypatch):
    fsspec.register_implementation("server", Server, clobber=True)
    for name, value in {"files": {}, "reads": 0, "sized": True, "ranges": True}.items():
        monkeypatch.setattr(Server, name, value)
    return Server


def saved(tmp_path, value, count=9_000_000):  # more than two ranges
    path = tmp_path / f"{value}.safetensors"
    tc.save(path, {"w": np.full(count, value, np.float32)})
    return path.read_bytes()


READERS = [
    pytest.param(lambda url, _: tc.load(url), id="load"),
    pytest.param(lambda url, _: [tensors["w"] for tensors in [tc.open(url)]], id="open"),
    pytest.param(lambda url, folder: tc.convert(url, folder / "out.safetensors", "float16"), id="convert"),
]


@pytest.mark.parametrize("read", READERS)
def test_a_file_that_changes_while_it_is_read_is_an_error(server, read, tmp_path):
    old, new = saved(tmp_path, 1), saved(tmp_path, 2)
    for after in (1, 2):
        server.files["m.safetensors"], server.reads = (old, new, after), 0
        with pytest.raises(tc.CastError, match=r"server://m.safetensors: the file was written again while it was read"):
            read("server://m.safetensors", tmp_path)
        assert not (tmp_path / "out.safetensors").exists()
    server.files["m.safetensors"] = (old, old, 0)
    read("server://m.safetensors", tmp_path)


@pytest.mark.parametrize("read", READERS)
def test_servers_without_sizes_or_ranges_are_refused_with_the_reason(server, read, tmp_path):
    content = saved(tmp_path, 1)
    server.files["m.safetensors"] = (content, content, 0)
    server.sized = False
    with pytest.raises(tc.CastError, match="does not tell the size of the file"):
        read("server://m.safetensors", tmp_path)
    server.sized, server.ranges, server.reads = True, False, 0
    with pytest.raises(tc.CastError, match="sends the whole file for a part of it"):
        read("server://m.safetensors", tmp_path)
    assert server.reads == 1


def full(self, data):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("name", ["c.safetensors", "c.npz"])
def test_a_failed_overwrite_keeps_the_old_file(name, tmp_path, monkeypatch):
    url = f"memory://overwrite/{name}"
    memory = fsspec.filesystem("memory")
    source = tmp_path / "source.safetensors"
    tc.save(source, {"new": np.ones(3, np.float32)})
    tc.save(url, {"old": np.ones(3, np.float32)})
    before = memory.cat_file(url)
    monkeypatch.setattr(MemoryFile, "write", full)
    for write in (lambda: tc.save(url, {"new": np.ones(3, np.float32)}, overwrite=True),
                  lambda: tc.convert(source, url, "float16", overwrite=True)):  # fmt: skip
        with pytest.raises(OSError, match="No space left"):
            write()
        assert memory.cat_file(url) == before and len(memory.find("memory://overwrite")) == 1
    monkeypatch.undo()
    tc.save(url, {"new": np.ones(3, np.float32)}, overwrite=True)
    assert list(tc.load(url)) == ["new"] and len(memory.find("memory://overwrite")) == 1
    memory.rm("memory://overwrite", recursive=True)


def test_a_new_file_appears_when_it_is_complete(monkeypatch):
    memory = fsspec.filesystem("memory")
    monkeypatch.setattr(MemoryFile, "write", full)
    with pytest.raises(OSError, match="No space left"):
        tc.save("memory://fresh/c.safetensors", {"new": np.ones(3, np.float32)})
    assert not memory.exists("memory://fresh/c.safetensors")


def test_errors_of_stores_are_ours(tmp_path):
    for url, kind, words in [("nosuch://x.npz", tc.UnsupportedError, "fsspec has no nosuch://"),
                             ("memory://nosuch.npz", tc.FileError, "there is no such file")]:  # fmt: skip
        with pytest.raises(kind, match=words):
            tc.load(url)
    with pytest.raises(FileNotFoundError):
        tc.open("memory://nosuch.npz")
    store = _remote.Store()
    store._systems["broken"] = None  # whatever a store raises
    with pytest.raises(tc.FileError, match="broken://x"):
        store.find("broken://x")
