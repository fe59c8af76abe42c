# SPDX-License-Identifier: Apache-2.0
"""Measures the memory of another process."""

import pathlib
import time


def peak_memory(pid):
    """Of resident memory so far, in bytes. `ru_maxrss` would count this process's, which the new one was forked from."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def wait_and_measure(process):
    """Waits for a subprocess.Popen; gives the peak of its resident memory in bytes."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_memory(process.pid))
        time.sleep(0.005)
    return peak
