# SPDX-License-Identifier: Apache-2.0
"""Every pair of types against five other implementations. TENSORCAST_THOROUGH=1 takes many more inputs."""

import functools
import os

import differences
import linear_differences
import pytest
import text_differences
from peers import PEERS

for package in ("openvino", "onnxruntime", "torch"):
    pytest.importorskip(package)  # the page holds what all of them give

THOROUGH = os.environ.get("TENSORCAST_THOROUGH") == "1"
TITLES = [peer.title for peer in PEERS]
pytestmark = pytest.mark.filterwarnings("ignore")  # peers warn about NaN and overflow


@functools.cache
def measured(title, thorough=False):
    return differences.measure(PEERS[TITLES.index(title)], thorough)


@functools.cache
def texts():
    return text_differences.measure_all()


@functools.cache
def linear():
    return linear_differences.measure_all()


def test_every_difference_of_quantization_is_classified():
    for found in linear():
        assert not found.unknown
        assert found.compared > 500_000
        assert {row.number for row in found.rows} == set(range(len(found.classes)))


@pytest.mark.parametrize("title", TITLES)
def test_every_difference_is_classified(title):
    findings = measured(title, THOROUGH)
    assert not findings.unknown
    assert findings.pairs >= 300 and findings.elements > 5_000_000
    assert findings.differing < findings.elements / 10


def test_every_difference_of_texts_is_classified():
    assert not text_differences.unknown(texts())


def test_the_page_is_what_was_measured():
    page = differences.page([measured(title) for title in TITLES], texts(), linear())
    assert page == differences.PAGE.read_text(), "python python/tests/differences.py --update writes it anew"


def test_every_class_is_needed():
    held = {number for title in TITLES for number, _ in measured(title).rows}
    assert held == set(range(len(differences.CLASSES)))


def test_an_unknown_difference_is_noticed():
    """A peer that is wrong in one code of one pair."""

    class Wrong:
        title, packages, types = "PyTorch", ("torch",), ["float16", "int8"]
        modes = staticmethod(lambda target: [{}])

        def cast(self, codes, source, target, options):
            result = PEERS[TITLES.index("PyTorch")].cast(codes, source, target, options)
            if target == "int8":
                result[0x3C00] = 2  # of float16 1.0
            return result

    (line,) = differences.measure(Wrong()).unknown
    assert line == "PyTorch: float16 0x3C00 (1) to int8 (): we 0x01 (1), they 0x02 (2); 1 such"
