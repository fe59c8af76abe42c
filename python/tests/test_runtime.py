# SPDX-License-Identifier: Apache-2.0
"""How a call behaves in the interpreter: signals, the GIL, references, the time of a small call."""

import ctypes
import os
import signal
import sys
import threading
import time
import timeit

import numpy as np
import pytest

import tensorcast as tc


class AlternateStack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]


@pytest.fixture
def stack_for_signals():
    """OpenVINO 2026.4 gives the main thread an alternate stack for signals, and frees it: the next signal crashes."""
    ctypes.CDLL(None).sigaltstack(ctypes.byref(AlternateStack(flags=2)), None)  # SS_DISABLE


def ends_by_control_c(call, seconds):
    """Whether control-C, `seconds` after the call began, ended it; False where the call was faster."""
    during = True

    def press(*_):
        if during:
            raise KeyboardInterrupt

    # A shell's background jobs, and what they start, ignore the signal.
    before = signal.signal(signal.SIGINT, press)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        call()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        during = False
        timer.join()
        signal.signal(signal.SIGINT, before)


def ends_halfway(array, seconds, **options):
    """Whether control-C ended a cast before its last element was written."""
    out = np.zeros(array.shape, np.int8)
    ended = ends_by_control_c(lambda: tc.cast(array, "int8", out=out, threads=1, **options), seconds)
    return ended and out.flat[-1] == 0


# A signal comes when the machine has time for it: before the call, or after the whole of it. One of these
# tries is in the midst.
PAUSES = [0.05, 0.1, 0.02] * 20


@pytest.mark.parametrize("shape", [(1 << 6, 1 << 24), (1 << 10, 1 << 20)], ids=["long rows", "short rows"])
def test_control_c_ends_a_long_call(shape, stack_for_signals):
    array = np.broadcast_to(np.ones(shape[1], np.float32), shape)
    assert any(ends_halfway(array, seconds, report=True) for seconds in PAUSES)


TEXTS = np.broadcast_to(np.array("1.5", object), 1 << 27)
NUMBERS = np.broadcast_to(np.float32(1.5), 1 << 27)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tc.cast(TEXTS, "float16"),
        lambda: tc.cast(TEXTS, "int4", packed=True),
        lambda: tc.cast(NUMBERS, "string"),
        lambda: tc.cast(TEXTS, np.dtype("U4")),
    ],
    ids=["to numbers", "to packed numbers", "from numbers", "to another kind"],
)
def test_control_c_ends_a_long_conversion_of_text(call, stack_for_signals):
    assert any(ends_by_control_c(call, seconds) for seconds in PAUSES)


def test_control_c_ends_a_long_cast_of_a_transposed_array(stack_for_signals):
    array = np.broadcast_to(np.ones((1 << 12, 1 << 10), np.float32).T, (1 << 8, 1 << 10, 1 << 12))
    assert any(ends_halfway(array, seconds) for seconds in PAUSES)


def test_other_threads_run_during_a_long_call():
    array = np.zeros(1 << 27, np.float32)
    out = np.empty(array.shape, np.float16)
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    while len(ticks) < 3:
        time.sleep(0.001)
    start = time.monotonic()
    tc.cast(array, "float16", out=out, threads=1)
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(start < tick < end for tick in ticks) >= 5


def test_two_threads_convert_at_once():
    array = np.random.default_rng(8).normal(size=1 << 20).astype(np.float32)
    expected = array.astype(np.float16)
    results = [None] * 4

    def convert(i):
        for _ in range(10):
            results[i] = tc.cast(array, "float16")

    threads = [threading.Thread(target=convert, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, expected) for result in results)


def _bytes_in_use():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_calls_keep_nothing():
    array, text = np.zeros((64, 16), np.float32), np.array(["1"])
    dtype, out = np.dtype(np.float16), np.empty((64, 16), np.float16)
    calls = [
        lambda: tc.cast(array, "float16"),
        lambda: tc.cast(array, dtype, saturate=False),
        lambda: tc.cast(array.T, "int4"),
        lambda: tc.cast(array, "float16", report=True),
        lambda: tc.cast(array, "float16", out=out),
        lambda: tc.cast(array, "int4", packed=True),
        lambda: tc.cast(text, "float32"),
        lambda: tc.cast(array, str),
    ]
    refusals = [
        lambda: tc.cast(array, "nothing"),
        lambda: tc.cast(array, []),
        lambda: tc.cast(array, "float16", opset=99),
        lambda: tc.cast(array, "float16", nothing=1),
        lambda: tc.cast(array, "float16", out_of_range="x"),
    ]
    for call in refusals:
        with pytest.raises((ValueError, TypeError)):
            call()

    def everything():
        for call in calls:
            call()
        for call in refusals:
            try:
                call()
            except (ValueError, TypeError):
                pass

    held = [array, text, dtype, out, np.dtype(np.float32), None, True]
    for _ in range(20):
        everything()
    before, memory = [sys.getrefcount(x) for x in held], _bytes_in_use()
    for _ in range(500):
        everything()
    assert [sys.getrefcount(x) for x in held] == pytest.approx(before, abs=20)
    assert _bytes_in_use() - memory < 2 << 20


def test_time_of_a_small_call(capsys):
    array = np.zeros(16, np.float32)
    scope = {"tc": tc, "array": array}
    with capsys.disabled():
        print()
        for call in ('tc.cast(array, "float16")', 'tc.cast(array, "float64")', 'array.astype("float64")'):
            best = min(timeit.repeat(call, globals=scope, number=20_000, repeat=5)) / 20_000
            print(f"  {call}: {best * 1e9:.0f} ns")
            assert best > 0
