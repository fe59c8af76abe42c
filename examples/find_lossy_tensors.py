# SPDX-License-Identifier: Apache-2.0
"""Lists the tensors of a file that lose more in float16 than in bfloat16, as a table or as JSON.

    python find_lossy_tensors.py model.safetensors [--json]
"""

import json
import sys

import tensorcast as tc


def lossy(path: str) -> list[tuple[str, tc.CastReport, tc.CastReport]]:
    found = []
    for tensor in tc.inspect(path, stats=True, candidates=["float16", "bfloat16"]).tensors:
        if tensor.stats is None or not tensor.stats.candidates:
            continue
        half, brain = tensor.stats.candidates["float16"], tensor.stats.candidates["bfloat16"]
        if half.overflowed or half.snr_db < brain.snr_db:
            found.append((tensor.name, half, brain))
    return found


def main() -> int:
    rows = lossy(sys.argv[1])
    if "--json" in sys.argv:
        print(json.dumps([{"name": name, "float16": json.loads(half.to_json())} for name, half, _ in rows]))
    else:
        for name, half, brain in rows:
            print(f"{name}: {half.overflowed} overflow; {half.snr_db:.1f} dB, as bfloat16 {brain.snr_db:.1f} dB")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
