# SPDX-License-Identifier: Apache-2.0
"""What tcast quantizes is loaded by transformers, which gives the logits of our own decoding; what tcast refuses fails.

A sample: a head that is tied and has no tensor, experts, and Conv1D. `scripts/checks/loaders` tries 21 architectures.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tensorcast as tc

BLOCKS = pathlib.Path(__file__).parents[2] / "tests/blocks"
PRESETS = json.loads((BLOCKS / "llm_compressor.json").read_text())


@pytest.mark.parametrize("architecture", ["whisper", "mixtral", "gpt2"])
def test_what_tcast_writes_loads(architecture):
    tcast = pathlib.Path(sys.executable).with_name("tcast")
    done = subprocess.run(
        [sys.executable, BLOCKS / "loaders.py", "--only", architecture],
        env={**os.environ, "TCAST": str(tcast)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 12


@pytest.mark.parametrize("preset", PRESETS)
def test_the_configuration_is_that_of_llm_compressor(preset, tmp_path):
    """But for `version`, and spaces: llm-compressor indents the file."""
    names = [f"model.layers.0.{name}.weight" for name in ("self_attn.q_proj", "mlp.down_proj")]
    model = tmp_path / "model"
    model.mkdir()
    tc.save(model / "model.safetensors", {name: np.ones((256, 256), np.float32) for name in names})
    (model / "config.json").write_text('{"model_type": "llama"}')
    tc.convert(model, tmp_path / "out", spelling="compressed-tensors", **PRESETS[preset]["options"])
    section = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]
    assert json.dumps(section) == json.dumps(PRESETS[preset]["section"])
