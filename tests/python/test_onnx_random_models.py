"""`tcast onnx convert` on random models: valid, loading, close, unchanged by a second conversion, and back to float32.

More: python tests/python/random_onnx_models.py --tcast PROGRAM --seeds 0:1000. Of the first 150 seeds, ONNX Runtime
1.31.1 cannot run one model in float16 (140), unless its optimizations are off.
"""

import pytest
import random_onnx_models


@pytest.mark.parametrize("seed", range(12))
def test_a_random_model(tcast, tmp_path, seed):
    to = ("float16", "bfloat16", "float64")[seed % 3]
    assert random_onnx_models.judge(tcast, seed, to, tmp_path) is None


def test_a_removed_cast_does_not_change_what_a_second_conversion_decides(tcast, tmp_path):
    """An output keeps float32 because its Cast does; what the runtime holds in front of it would give float64."""
    assert random_onnx_models.judge(tcast, 203, "float64", tmp_path) is None


def test_the_models_have_what_they_are_for():
    seen = set()
    for seed in range(12):
        model, _ = random_onnx_models.Maker(seed).model()
        left = [model.graph, *model.functions]
        while left:
            for node in left.pop().node:
                seen.add(node.op_type)
                left += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        seen |= {"function"} if model.functions else set()
    assert {"If", "Loop", "Scan", "Cast", "CastLike", "SequenceAt", "function", "MatMul", "Where"} <= seen
