# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on a real S3 server of this machine, behind a proxy that refuses requests and ends them in the middle."""

import http.client
import http.server
import json
import pathlib
import tempfile
import threading
import unittest

import fsspec
import numpy as np
import safetensors.numpy
from moto.server import ThreadedMotoServer

import tensorcast as tc

ELEMENTS = 12 << 20  # of a shard: 48 MiB, so that reading takes several requests, and writing several parts
KEYS = {"key": "test", "secret": "test"}
RECORD = ".tcast-files.json"  # of what a run wrote; it has times


class Proxy(http.server.BaseHTTPRequestHandler):
    """Hands requests on; `trouble(method, path)` says what happens to one: None, "refused" or "cut"."""

    protocol_version = "HTTP/1.1"
    server_port = 0
    trouble = staticmethod(lambda method, path: None)

    def hand_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble = Proxy.trouble(self.command, self.path)
        if trouble == "refused":
            self.send_error(503)
            return
        server = http.client.HTTPConnection("127.0.0.1", Proxy.server_port, timeout=30)
        server.request(self.command, self.path, body, dict(self.headers))
        answer = server.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if trouble == "cut" else content)
        if trouble == "cut":
            self.wfile.flush()
            self.connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = hand_on

    def log_message(self, *arguments):
        pass


class Sometimes:
    """Lets every n-th request of a kind fail, at most `most` times."""

    def __init__(self, wanted, kinds, every=3, most=1000):
        self._wanted, self._kinds, self._every, self._most = wanted, kinds, every, most
        self.count = self.failed = 0
        self._lock = threading.Lock()

    def __call__(self, method, path):
        with self._lock:
            if not self._wanted(method, path):
                return None
            self.count += 1
            if self.count % self._every or self.failed == self._most:
                return None
            self.failed += 1
            return self._kinds[self.failed % len(self._kinds)]


def is_data(method, path):
    return method == "GET" and ".safetensors" in path and "index.json" not in path and "list-type" not in path


def scatter_scales(folder):
    """Moves the scales of each file to the next one."""
    files = sorted(folder.glob("*.safetensors"))
    contents = [safetensors.numpy.load_file(file) for file in files]
    places = {}
    for i, file in enumerate(files):
        codes = {name: tensor for name, tensor in contents[i].items() if "scale" not in name}
        scales = {name: tensor for name, tensor in contents[i - 1].items() if "scale" in name}
        safetensors.numpy.save_file({**codes, **scales}, file, {"format": "pt"})
        places.update(dict.fromkeys([*codes, *scales], file.name))
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    index.write_text(json.dumps({**content, "weight_map": places}))
    (folder / RECORD).unlink()  # of files that are others now


class UrlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ThreadedMotoServer(port=0, verbose=False)
        cls.server.start()
        Proxy.server_port = cls.server.get_host_and_port()[1]
        cls.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=cls.proxy.serve_forever, daemon=True).start()
        direct = f"http://127.0.0.1:{Proxy.server_port}"
        cls.s3 = fsspec.filesystem("s3", endpoint_url=direct, use_listings_cache=False, skip_instance_cache=True, **KEYS)
        cls.s3.mkdir("models")
        tc.set_storage_options("s3", endpoint_url=f"http://127.0.0.1:{cls.proxy.server_port}", **KEYS)
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        source = cls.folder / "model"
        source.mkdir()
        random = np.random.default_rng(1)
        for i in range(3):
            tensors = {f"layers.{i}.weight": random.standard_normal(ELEMENTS, np.float32).reshape(-1, 1024)}
            safetensors.numpy.save_file(tensors, source / f"model-{i + 1:05}-of-00003.safetensors", {"format": "pt"})
        (source / "config.json").write_text('{"dtype": "float32"}')
        (source / "tokenizer.json").write_text("{}")
        tc.convert(source, cls.folder / "expected", "bfloat16")
        cls.expected = {path.name: path.read_bytes() for path in (cls.folder / "expected").iterdir()
                        if path.name != RECORD}
        cls.s3.put(str(source), "models/model", recursive=True)

    @classmethod
    def tearDownClass(cls):
        cls.proxy.shutdown()
        cls.server.stop()
        cls.temporary.cleanup()

    def setUp(self):
        Proxy.trouble = lambda method, path: None
        self.name = self.id().rpartition(".")[2]
        self.out = f"s3://models/{self.name}"

    def check(self):
        names = [name for name in self.s3.find(f"models/{self.name}") if not name.endswith(RECORD)]
        self.assertEqual({name.rpartition("/")[2]: self.s3.cat_file(name) for name in names}, self.expected)

    def test_there_and_back(self):
        done = tc.convert("s3://models/model", self.out, "bfloat16", verify=True)
        self.assertEqual([shard.tensors for shard in done.shards], [1, 1, 1])
        self.check()
        found = tc.inspect(self.out)
        self.assertEqual([row.dtype for row in found.tensors], ["bfloat16"] * 3)
        self.assertEqual(tc.checkpoint.verify(self.out, against="s3://models/model").tensors, 3)
        self.assertTrue(all(not row.equal and row.snr_db > 40 for row in tc.checkpoint.diff("s3://models/model", self.out)))
        with self.assertRaises(FileExistsError):
            tc.convert("s3://models/model", self.out, "bfloat16")

    def test_between_a_folder_and_a_store(self):
        tc.convert("s3://models/model", self.folder / "here", "bfloat16")
        self.assertEqual({path.name: path.read_bytes() for path in (self.folder / "here").iterdir()
                          if path.name != RECORD}, self.expected)
        tc.convert(self.folder / "model", self.out, "bfloat16")
        self.check()

    def test_requests_that_fail_and_stop_in_the_middle(self):
        Proxy.trouble = reading = Sometimes(is_data, ["refused", "cut"])
        tc.convert("s3://models/model", self.out, "bfloat16")
        self.check()
        self.assertGreater(reading.failed, 2)

    def test_uploads_that_fail(self):
        parts = Sometimes(lambda method, path: method == "PUT" and "partNumber" in path, ["refused"], every=2)
        Proxy.trouble = parts
        tc.convert("s3://models/model", self.out, "bfloat16")
        self.check()
        self.assertGreater(parts.failed, 1)

    def test_a_store_that_is_gone_for_a_while(self):
        tc.checkpoint.plan("s3://models/model", self.out, "bfloat16")
        gone = Sometimes(lambda method, path: is_data(method, path) and "00002-of" in path, ["refused"], every=1)
        Proxy.trouble = gone
        with self.assertRaises(tc.FileError) as caught:
            tc.checkpoint.run_shard(self.out)
        self.assertIn("model-00002-of-00003", str(caught.exception))
        self.assertFalse(self.s3.exists(f"models/{self.name}/model.safetensors.index.json"))
        Proxy.trouble = lambda method, path: None
        done = tc.convert("s3://models/model", self.out, "bfloat16")
        self.assertTrue(done.resumed)
        self.check()

    def test_cancelled_and_in_steps(self):
        with self.assertRaises(tc.Cancelled):
            tc.convert("s3://models/model", self.out, "bfloat16", threads=1,  # one shard after the other
                       progress=lambda now, of, name: not name.startswith("layers.1"))
        state = tc.checkpoint.status(self.out)
        self.assertEqual([shard.done_before for shard in state.shards], [True, False, False])
        tc.checkpoint.run_shard(self.out, shard_of=(1, 2))
        tc.checkpoint.run_shard(self.out, 2)
        tc.checkpoint.finish(self.out)
        self.check()

    def test_an_input_that_changed(self):
        self.s3.copy("models/model", f"models/{self.name}-in", recursive=True)
        tc.checkpoint.plan(f"s3://models/{self.name}-in", self.out, "bfloat16")
        name = f"models/{self.name}-in/model-00003-of-00003.safetensors"
        content = bytearray(self.s3.cat_file(name))
        content[-1] ^= 1
        self.s3.pipe_file(name, bytes(content))
        with self.assertRaisesRegex(tc.FileError, "changed since"):
            tc.checkpoint.run_shard(self.out)

    def test_quantized_there_decoded_and_respelled(self):
        """Each step as in folders of this machine, with requests that fail; scales are in other shards than their codes."""
        source = self.folder / "matrices"
        source.mkdir()
        random = np.random.default_rng(2)
        for i in range(2):
            tensors = {f"model.layers.{i}.mlp.{name}.weight": random.standard_normal((1024, 512), np.float32)
                       for name in ("gate_proj", "up_proj", "down_proj")}
            safetensors.numpy.save_file(tensors, source / f"model-{i + 1:05}-of-00002.safetensors", {"format": "pt"})
        (source / "config.json").write_text('{"dtype": "float32"}')
        steps = [("mxfp4", source, "mxfp4", {}), ("nvfp4", "mxfp4", "nvfp4", {"spelling": "compressed-tensors"}),
                 ("respelled", "nvfp4", None, {"respell": "modelopt"}), ("wide", "respelled", "bfloat16", {})]
        for name, begin, to, options in steps:
            here = begin if begin == source else self.folder / begin
            tc.convert(here, self.folder / name, to, **options)
            if name == "mxfp4":
                scatter_scales(self.folder / name)
                self.s3.put(str(self.folder / name), f"models/{self.name}-{name}", recursive=True)
                continue
            Proxy.trouble = reading = Sometimes(is_data, ["refused", "cut"], most=6)
            tc.convert(f"{self.out}-{begin}", f"{self.out}-{name}", to, **options)
            Proxy.trouble = lambda method, path: None
            self.assertGreater(reading.failed, 2)
            files = {path.name: path.read_bytes() for path in (self.folder / name).iterdir() if path.name != RECORD}
            self.assertEqual({path.rpartition("/")[2]: self.s3.cat_file(path) for path in self.s3.find(f"models/{self.name}-{name}")
                              if not path.endswith(RECORD)}, files)
        self.assertEqual({layer.scheme for layer in tc.inspect(f"{self.out}-mxfp4").layers}, {"mxfp4"})
        tc.checkpoint.verify(f"{self.out}-nvfp4")  # by its digests

    def test_single_files(self):
        tc.convert("s3://models/model/model-00001-of-00003.safetensors", f"{self.out}.safetensors", "float16")
        tc.convert(f"{self.out}.safetensors", self.folder / "back.npz", "float32")
        with np.load(self.folder / "back.npz") as back:
            self.assertEqual(back["layers.0.weight"].dtype, np.float32)
        with self.assertRaises(FileExistsError):
            tc.convert(self.folder / "back.npz", f"{self.out}.safetensors", "float16")
        with self.assertRaises(FileNotFoundError):
            tc.convert("s3://models/none.safetensors", self.folder / "x.npz", "float16")


if __name__ == "__main__":
    unittest.main()
