# SPDX-License-Identifier: Apache-2.0
"""Converts the weights of a checkpoint to float8, keeps the norms, and says what it cost.

    python shrink_checkpoint.py model.safetensors model-fp8.safetensors
"""

import sys

import tensorcast as tc


def shrink(src: str, dst: str) -> tc.ConvertResult:
    return tc.convert(src, dst, "float8_e4m3fn", rules={r"norm|bias": "bfloat16"}, report=True, verify=True)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        done = shrink(sys.argv[1], sys.argv[2])
    except FileNotFoundError as error:
        print(f"no such file: {error.filename}", file=sys.stderr)
        return 1
    except tc.CastError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    for tensor in done.tensors:
        noise = f"{tensor.report.snr_db:.1f} dB" if tensor.report and tensor.from_ != tensor.to else "unchanged"
        print(f"{tensor.name}: {tensor.from_} -> {tensor.to}, {noise}")
    print(f"{done.bytes_read} -> {done.bytes_written} bytes, verified: {done.verified}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
