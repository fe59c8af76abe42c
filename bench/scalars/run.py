# SPDX-License-Identifier: Apache-2.0
"""Times single elements beside those of ml_dtypes, Eigen, NumKong and CUDA's headers for the host, in one run.

usage: run.py [COMPILER FLAG...]     g++ -O3 if nothing is named

Downloads the headers once, as PyPI's packages have them, to build/bench/scalars; ml_dtypes' has Eigen inside.
"""

import pathlib
import subprocess
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build/bench/scalars"
SOURCES = {"ml_dtypes": "0.5.4", "numkong": "7.8.6"}
WHEELS = {"nvidia-cuda-runtime": "13.5.37", "nvidia-cuda-crt": "13.5.37", "nvidia-cuda-cccl": "13.3.5.0.6"}


def fetch():
    """The folders of all headers."""
    download = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", str(WORK)]
    if not (WORK / "complete").exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([*download, "--no-binary", ",".join(SOURCES), *(f"{n}=={v}" for n, v in SOURCES.items())], check=True)
        subprocess.run([*download, *(f"{name}=={version}" for name, version in WHEELS.items())], check=True)
        for path in WORK.iterdir():
            if path.name.endswith(".tar.gz"):
                with tarfile.open(path) as archive:
                    archive.extractall(WORK, filter="data")
            elif path.suffix == ".whl":
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(WORK / "wheels")
        (WORK / "complete").touch()
    ml_dtypes, numkong = (WORK / f"{name}-{version}" for name, version in SOURCES.items())
    cuda = WORK / "wheels/nvidia/cu13/include"
    return [ml_dtypes, ml_dtypes / "third_party/eigen", numkong / "include", cuda, cuda / "cccl"]


def main():
    command = sys.argv[1:] or ["g++", "-O3"]
    program = WORK / "scalars"
    includes = [flag for folder in fetch() for flag in ("-isystem", str(folder))]
    subprocess.run([*command, "-std=c++20", f"-I{ROOT / 'include'}", *includes, str(HERE / "main.cpp"), "-o", str(program)],
                   check=True)
    print(*command, flush=True)
    subprocess.run([program], check=True)


if __name__ == "__main__":
    main()
