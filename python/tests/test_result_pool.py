# SPDX-License-Identifier: Apache-2.0
"""Memory of freed results: who gets it, who never does, and when it is given back."""

import os
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

import tensorcast as tc
from tensorcast import CastError, _core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pool needs MADV_FREE of Linux")

NUMBERS = np.arange(2 << 20, dtype=np.int32)  # to float32: 8 MiB
USUAL = 512 << 20


@pytest.fixture(autouse=True)
def empty_pool():
    tc.set_result_pool(0)
    tc.set_result_pool(USUAL)
    yield
    tc.set_result_pool(USUAL)


def limit():
    return _core.result_pool_use()[0]


def idle():
    return _core.result_pool_use()[1]


def reused():
    return _core.result_pool_use()[2]


def allocator(array):
    return np._core.multiarray.get_handler_name(array) if hasattr(np, "_core") else None


def is_right(result):
    return np.array_equal(result, NUMBERS.astype(np.float32))


def test_a_freed_result_is_the_next_ones_memory():
    first = tc.cast(NUMBERS, "float32")
    address, before = first.ctypes.data, reused()
    assert first.flags.owndata and first.base is None and is_right(first) and idle() == 0
    del first
    assert idle() == 8 << 20
    again = tc.cast(NUMBERS, "float32")
    assert again.ctypes.data == address and is_right(again) and reused() == before + 1 and idle() == 0
    smaller = tc.cast(NUMBERS[: 3 << 19], "float32")  # 6 MiB
    assert smaller.ctypes.data != address
    del again
    assert tc.cast(NUMBERS[: 3 << 19], "float32").ctypes.data == address


def test_memory_in_use_stays():
    first = tc.cast(NUMBERS, "float32")
    address, view = first.ctypes.data, first[1::2]
    del first
    second = tc.cast(-NUMBERS, "float32")
    assert second.ctypes.data != address and np.array_equal(view, NUMBERS[1::2].astype(np.float32))
    shape = tc.cast(NUMBERS.reshape(2, -1).T, "float16")
    assert shape.shape == (1 << 20, 2) and shape.flags.c_contiguous


def test_other_arrays_are_numpys():
    if hasattr(np, "_core"):
        assert allocator(tc.cast(NUMBERS, "float32")) == "tensorcast_results"
        assert allocator(np.empty(8 << 20, np.uint8)) == allocator(tc.cast(NUMBERS, "float32").copy()) == "default_allocator"
        assert allocator(tc.cast(NUMBERS[:1000], "float32")) == "default_allocator"
    tc.cast(NUMBERS[:1000], "float32")
    tc.cast(NUMBERS[: (1 << 20) - 1], "float32")
    assert idle() == (8 << 20 if hasattr(np, "_core") else 0)


def test_limits():
    tc.set_result_pool(0)
    kept = tc.cast(NUMBERS, "float32")
    del kept
    assert idle() == 0 and limit() == 0
    tc.set_result_pool(9 << 20)
    pair = [tc.cast(NUMBERS, "float32"), tc.cast(NUMBERS, "float32")]
    pair.clear()
    assert idle() == 8 << 20
    tc.set_result_pool(np.int64(USUAL))
    many = [tc.cast(NUMBERS, "float32") for _ in range(7)]
    many.clear()
    assert idle() == 32 << 20  # four times the last result
    tc.set_result_pool(10 << 20)
    assert idle() == 8 << 20
    for wrong in (-1, 1 << 63):
        with pytest.raises(CastError, match="0 or more"):
            tc.set_result_pool(wrong)
    for wrong in (1.5, "512", None):
        with pytest.raises(TypeError, match="whole number"):
            tc.set_result_pool(wrong)


def test_resized_results_keep_their_elements():
    result = tc.cast(NUMBERS, "float32")
    for size in (3 << 20, 2 << 20, 1000, 5 << 20):
        kept = min(size, result.size)
        expected = result[:kept].copy()
        result.resize(size, refcheck=False)
        assert np.array_equal(result[:kept], expected) and not result[kept:].any()
    del result


def test_idle_memory_is_given_back():
    kept = tc.cast(NUMBERS, "float32")
    del kept
    for _ in range(600):  # until it is, in about 3 seconds
        if idle() == 0:
            break
        time.sleep(0.1)
    assert idle() == 0
    assert is_right(tc.cast(NUMBERS, "float32"))


def test_threads():
    wrong = []

    def work(sign):
        numbers = NUMBERS * np.int32(sign)
        expected = numbers.astype(np.float32)
        for _ in range(10):
            if not np.array_equal(tc.cast(numbers, "float32", threads=1), expected):
                wrong.append(sign)

    threads = [threading.Thread(target=work, args=(sign,)) for sign in (1, -1, 3, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tracemalloc_sees_the_arrays():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2):  # the second one gets the first one's memory
            result = tc.cast(NUMBERS, "float32")
            assert tracemalloc.get_traced_memory()[0] - before >= result.nbytes
            del result
            assert tracemalloc.get_traced_memory()[0] - before < 1 << 20
    finally:
        tracemalloc.stop()


def in_a_process(code, **environment):
    return subprocess.run([sys.executable, "-c", f"import numpy as np, tensorcast as tc\n{code}"], capture_output=True,
                          text=True, env={**os.environ, **environment}, timeout=120)  # fmt: skip


def test_a_forked_child_has_a_pool_of_its_own():
    done = in_a_process("""
import os, threading
x = np.arange(2 << 20, dtype=np.int32)
expected = x.astype(np.float32)
stop = threading.Event()
def work():
    while not stop.is_set():
        tc.cast(x, "float32", threads=1)
thread = threading.Thread(target=work)
thread.start()  # its first call may be going on when the first child is made
for _ in range(5):
    child = os.fork()
    if child == 0:
        ok = all(np.array_equal(tc.cast(x, "float32", threads=1), expected) for _ in range(3))
        os._exit(0 if ok and tc._core.result_pool_use()[1] else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
""")
    assert done.returncode == 0, done.stderr


def test_the_environment_variable():
    show = "print(tc._core.result_pool_use()[0])"
    assert in_a_process(show).stdout == f"{USUAL}\n"
    assert in_a_process(show, TENSORCAST_RESULT_POOL="0").stdout == "0\n"
    assert in_a_process(show, TENSORCAST_RESULT_POOL="4096").stdout == "4096\n"
    assert "number of bytes" in in_a_process(show, TENSORCAST_RESULT_POOL="all").stderr


def test_results_may_outlive_everything():
    done = in_a_process("""
import sys
x = np.arange(2 << 20, dtype=np.int32)
tc.cast(x, "float32")
sys.modules["kept"] = tc.cast(x, "float32")
""")
    assert done.returncode == 0 and done.stderr == ""


def test_results_of_pytorch_are_of_the_pool():
    torch = pytest.importorskip("torch")
    x = torch.arange(3 << 20, dtype=torch.float32).reshape(3, 1024, 1024).requires_grad_()
    with torch.no_grad():
        first = tc.cast(x, "bfloat16")
    assert (first.shape, first.dtype, first.requires_grad) == (x.shape, torch.bfloat16, False)
    assert first.is_contiguous() and torch.equal(first, x.detach().to(torch.bfloat16))
    address, before = first.data_ptr(), reused()
    kept = first[1:]
    del first
    assert idle() == 0, "a view keeps the memory"
    assert torch.equal(kept, x.detach()[1:].to(torch.bfloat16))
    del kept
    assert idle() == 6 << 20
    again = tc.cast(x.detach(), "float16")
    assert (again.data_ptr(), reused()) == (address, before + 1)
    again += 1
    assert torch.equal(again, x.detach().to(torch.float16) + 1)
    assert tc.cast(x.detach(), "bool").dtype == torch.bool
    assert tc.cast(x.detach()[:1, :1], "bfloat16").data_ptr() != address
