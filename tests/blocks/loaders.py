#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantizes tiny random models of many architectures, and loads what tcast writes with transformers.

What tcast writes without a word must give the logits of our own decoding, bit for bit. What it refuses is written with
--force-layout, and must fail; so must what it warns of. `--markdown` writes the table of docs/loaders.md.

  TCAST=tcast tests/blocks/loaders.py [--only ARCHITECTURE,...] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import compressed_tensors
import torch
import transformers

TCAST = os.environ["TCAST"]
WIDTH, INNER, LAYERS, WORDS = 256, 512, 2, 1024
CT = "compressed-tensors"
CASES = [
    *((scheme, CT) for scheme in ("fp8-tensor", "fp8-channel", "fp8-block", "mxfp8", "mxfp6", "mxfp4", "nvfp4",
                                  "int8-channel", "int4-group")),
    ("fp8-block", "deepseek"), ("mxfp8", "transformers-mxfp8"), ("mxfp4", "gpt-oss"),
]  # fmt: skip
# On a CPU transformers decodes these layouts while it loads, whatever the module; on a GPU only its linear layers.
DECODED_ON_CPU = ("deepseek", "transformers-mxfp8")
NEAR = "less than 0.03 of the norm differs"
MARKS = {
    "=": "loads, with the logits of our own decoding",
    "~": "loads, with scales that are rounded to bfloat16",
    "left": "loads so, and the plan says which weights are left as they are",
    "fault": "is written with a warning that names the loader, which loads other numbers or fails",
    "no": "is refused; with `--force-layout`, the loader loads other numbers or fails",
    "size": "is refused, as the scheme cannot hold a weight",
    "cpu": "is refused; with `--force-layout` it loads on a CPU, where transformers decodes every weight",
}


def text(kind: str, **more: object) -> Callable[[], tuple[object, str]]:
    base = dict(hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=4,
                num_key_value_heads=2, vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
    return lambda: (getattr(transformers, kind)(**{**base, **more}), "AutoModelForCausalLM")


def other(kind: str, model: str, **values: object) -> Callable[[], tuple[object, str]]:
    return lambda: (getattr(transformers, kind)(**values), model)


TOWER = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=LAYERS, num_attention_heads=4)
IMAGE = dict(image_size=32, patch_size=8)
EXPERTS = dict(moe_intermediate_size=128, num_experts_per_tok=2)
ENCODER = dict(hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=4)
ARCHITECTURES: dict[str, Callable[[], tuple[object, str]]] = {
    "llama": text("LlamaConfig", tie_word_embeddings=False),
    "qwen2": text("Qwen2Config", tie_word_embeddings=True),
    "qwen3": text("Qwen3Config", tie_word_embeddings=True, head_dim=64),
    "qwen3_moe": text("Qwen3MoeConfig", num_experts=8, head_dim=64, **EXPERTS),
    "mixtral": text("MixtralConfig", num_local_experts=4),
    "gemma3_text": text("Gemma3TextConfig", head_dim=64),
    "phi3": text("Phi3Config"),
    "deepseek_v3": text("DeepseekV3Config", num_key_value_heads=4, n_routed_experts=8, n_group=2, topk_group=1,
                        q_lora_rank=128, kv_lora_rank=128, qk_rope_head_dim=32, qk_nope_head_dim=32, v_head_dim=64,
                        first_k_dense_replace=1, **EXPERTS),
    "gpt_oss": text("GptOssConfig", head_dim=64, num_local_experts=4, num_experts_per_tok=2),
    "gpt2": other("GPT2Config", "AutoModelForCausalLM", n_embd=WIDTH, n_layer=LAYERS, n_head=4, vocab_size=WORDS,
                  bos_token_id=0, eos_token_id=0),
    "mamba": other("MambaConfig", "AutoModelForCausalLM", hidden_size=WIDTH, num_hidden_layers=LAYERS,
                   vocab_size=WORDS),
    "mamba2": other("Mamba2Config", "AutoModelForCausalLM", hidden_size=WIDTH, num_hidden_layers=LAYERS,
                    vocab_size=WORDS, num_heads=8, head_dim=64, n_groups=1),
    "t5": other("T5Config", "AutoModelForSeq2SeqLM", d_model=WIDTH, d_ff=INNER, num_layers=LAYERS, num_heads=4,
                d_kv=64, vocab_size=WORDS, decoder_start_token_id=0),
    "bert": other("BertConfig", "AutoModelForMaskedLM", vocab_size=WORDS, **ENCODER),
    "whisper": other("WhisperConfig", "AutoModelForSpeechSeq2Seq", d_model=WIDTH, encoder_layers=LAYERS,
                     decoder_layers=LAYERS, encoder_attention_heads=4, decoder_attention_heads=4,
                     encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, vocab_size=WORDS, pad_token_id=0, bos_token_id=1,
                     eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None),
    "clip": other("CLIPConfig", "AutoModel", text_config=dict(TOWER, vocab_size=WORDS),
                  vision_config=dict(TOWER, **IMAGE), projection_dim=64),
    "siglip": other("SiglipConfig", "AutoModel", text_config=dict(TOWER, vocab_size=WORDS),
                    vision_config=dict(TOWER, **IMAGE)),
    "vit": other("ViTConfig", "AutoModelForImageClassification", num_labels=10, **ENCODER, **IMAGE),
    "llava": lambda: (transformers.LlavaConfig(
        text_config=text("LlamaConfig")()[0], vision_config=transformers.CLIPVisionConfig(**TOWER, **IMAGE),
        image_token_index=1000), "AutoModelForImageTextToText"),
    "qwen2_5_vl": other("Qwen2_5_VLConfig", "AutoModelForImageTextToText",
                        text_config=dict(ENCODER, num_key_value_heads=2, vocab_size=WORDS, bos_token_id=0,
                                         eos_token_id=1,
                                         rope_scaling={"type": "mrope", "mrope_section": [8, 12, 12]}),
                        vision_config=dict(depth=2, hidden_size=128, intermediate_size=256, num_heads=4,
                                           out_hidden_size=WIDTH, fullatt_block_indexes=[1])),
    "llama-odd": text("LlamaConfig", hidden_size=192, intermediate_size=480, num_attention_heads=6,
                             vocab_size=1003, tie_word_embeddings=False),
}  # fmt: skip


def save_model(name: str, folder: pathlib.Path) -> None:
    """Rows of different sizes, and a few large numbers, as trained models have."""
    config, model = ARCHITECTURES[name]()
    torch.manual_seed(sum(map(ord, name)))
    made = getattr(transformers, model).from_config(config)
    random = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter_name, parameter in made.named_parameters():
            if parameter.dim() >= 2 and "embed" not in parameter_name and "A_log" not in parameter_name:
                parameter.mul_(torch.exp(0.3 * torch.randn((*parameter.shape[:-1], 1), generator=random)))
    made.to(torch.bfloat16).save_pretrained(folder)


def inputs_of(config: dict[str, object], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(3)
    words = torch.randint(3, 900, (1, 12), generator=random)
    pixels = torch.randn(1, 3, 32, 32, generator=random).to(dtype)
    kind = config["model_type"]
    if kind == "t5":
        return {"input_ids": words, "decoder_input_ids": words[:, :5]}
    if kind == "whisper":
        sound = torch.randn(1, 80, 3000, generator=random).to(dtype)
        return {"input_features": sound, "decoder_input_ids": words[:, :5]}
    if kind in ("clip", "siglip"):
        return {"input_ids": words, "pixel_values": pixels}
    return {"pixel_values": pixels} if kind == "vit" else {"input_ids": words}


class NotLoaded(Exception):
    pass


@torch.no_grad()
def logits_of(folder: pathlib.Path) -> torch.Tensor:
    config = json.loads((folder / "config.json").read_text())
    model, told = getattr(transformers, config["architectures"][0]).from_pretrained(
        folder, dtype=torch.bfloat16, output_loading_info=True
    )
    lost = {kind: names for kind, names in told.items() if names}
    if lost:
        raise NotLoaded(str(lost)[:200])
    made = model.eval()(**inputs_of(config, torch.bfloat16))
    for kind in ("logits", "logits_per_image"):
        if getattr(made, kind, None) is not None:
            return getattr(made, kind).float()
    return made[0].float()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TCAST, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def is_equal(made: pathlib.Path, decoded: pathlib.Path) -> tuple[bool, str]:
    done = run("convert", made, "-o", decoded, "--to", "bfloat16")
    if done.returncode:
        return False, f"not decoded: {done.stderr.strip()}"
    expected = logits_of(decoded)
    try:
        found = logits_of(made)
    except Exception as error:  # noqa: BLE001: whatever a loader raises
        return False, f"{type(error).__name__}: {str(error)[:160]}"
    differs = float((found - expected).norm() / expected.norm())
    return torch.equal(found, expected), NEAR if differs < 0.03 else f"{differs:.2g} of the norm differs"


def mark_of(source: pathlib.Path, scheme: str, layout: str, folder: pathlib.Path) -> tuple[str, str]:
    """A key of MARKS; "wrong" and what is."""
    made, decoded = folder / "made", folder / "decoded"
    arguments = ("convert", source, "-o", made, "--to", scheme, "--spelling", layout)
    done = run(*arguments)
    if done.returncode == 0:
        same, why = is_equal(made, decoded)
        if "do not take it" in done.stderr:
            return ("wrong", "is warned of, and loads") if same else ("fault", why)
        if why == NEAR and not same:
            return "~", ""
        if not same:
            return "wrong", why
        return "left" if "inputs are not" in done.stdout + done.stderr else "=", ""
    if "do not take it" not in done.stderr:
        return "size", done.stderr.strip()
    done = run(*arguments, "--force-layout")
    if done.returncode:
        return "size", done.stderr.strip()
    same, why = is_equal(made, decoded)
    if not same:
        return "no", why
    return ("cpu", "") if layout in DECODED_ON_CPU else ("wrong", "is refused, and loads")


def table_of(names: list[str]) -> dict[str, dict[tuple[str, str], str]]:
    table: dict[str, dict[tuple[str, str], str]] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as temporary:
            source = pathlib.Path(temporary) / "source"
            save_model(name, source)
            for scheme, layout in CASES:
                with tempfile.TemporaryDirectory() as work:
                    mark, why = mark_of(source, scheme, layout, pathlib.Path(work))
                table.setdefault(name, {})[scheme, layout] = mark
                print(f"{name}: {scheme} as {layout}: {mark} {why}".rstrip(), flush=True)
    return table


def markdown_of(table: dict[str, dict[tuple[str, str], str]]) -> str:
    used = [mark for mark in MARKS if any(mark in row.values() for row in table.values())]
    heads = [f"{scheme}, {layout}" for scheme, layout in CASES]
    lines = [
        f"Made by `scripts/checks/loaders` with transformers {transformers.__version__}, compressed-tensors "
        f"{compressed_tensors.__version__} and PyTorch {torch.__version__.split('+')[0]} on a CPU, "
        f"{datetime.date.today()}:",
        "",
        "| model_type | " + " | ".join(heads) + " |",
        "|---|" + "---|" * len(heads),
        *("| " + " | ".join([f"`{name}`", *row.values()]) + " |" for name, row in table.items()),
        "",
        *(f"* `{mark}`: {MARKS[mark]}." for mark in used),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="architectures between commas")
    parser.add_argument("--markdown", type=pathlib.Path, help="a page whose table is replaced")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    names = arguments.only.split(",") if arguments.only else list(ARCHITECTURES)
    table = table_of(names)
    if arguments.markdown:
        begin, end = "<!-- table -->\n", "<!-- end of table -->\n"
        page = arguments.markdown.read_text()
        head, rest = page.split(begin)
        arguments.markdown.write_text(head + begin + markdown_of(table) + end + rest.split(end)[1])
    wrong = [name for name, row in table.items() if "wrong" in row.values()]
    if wrong:
        print(f"loaders: the table of loaders is wrong about {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
