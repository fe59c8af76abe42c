# SPDX-License-Identifier: Apache-2.0
"""scripts/checks/wheels reads binaries, not the name of the wheel alone."""

import platform
import shutil
import subprocess
import zipfile

import pytest

HERE = platform.machine()


@pytest.fixture
def checked(source_dir, tmp_path):
    if shutil.which("cc") is None or shutil.which("readelf") is None:
        pytest.skip("needs a C compiler and readelf")

    def check(code, tag, *flags, name="tensorcast/_core.abi3.so"):
        (tmp_path / "x.c").write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "x.so", tmp_path / "x.c", *flags], check=True)
        wheel = tmp_path / f"tensorcast-1.0-cp312-abi3-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.write(tmp_path / "x.so", name)
        result = subprocess.run([source_dir / "scripts/checks/wheels", wheel], capture_output=True, text=True)
        assert (result.returncode == 0) == (result.stderr == "")
        return result.stderr + result.stdout

    return check


ALONE = "int f(void) { return 1; }"
# A function of glibc 2.16.
NEW = '#include <stdlib.h>\nvoid* f(void) { return aligned_alloc(8, 8); }'


def test_what_a_wheel_needs_is_what_its_tag_says(checked):
    assert "1 binaries, which need no symbol of glibc" in checked(ALONE, f"manylinux_2_17_{HERE}", "-nostdlib")
    assert "GLIBC_2." in checked(NEW, f"manylinux_2_17_{HERE}.manylinux2014_{HERE}")
    found = checked(NEW, f"manylinux_2_5_{HERE}")
    assert "_core.abi3.so needs GLIBC_2.16, and the tag says" in found or HERE != "x86_64"
    assert "and the tag says musllinux" in checked(NEW, f"musllinux_1_2_{HERE}")


def test_other_libraries_and_machines_are_refused(checked):
    used = ["-Wl,--no-as-needed"]
    assert "needs libstdc++.so.6" in checked(ALONE, f"manylinux_2_35_{HERE}", *used, "-lstdc++")
    extension = "tensorcast/lib/libtensorcast_openvino.so"
    assert "needs lib" not in checked(ALONE, f"manylinux_2_35_{HERE}", *used, "-lstdc++", name=extension)
    assert "needs libz.so.1" in checked(ALONE, f"manylinux_2_35_{HERE}", *used, "-l:libz.so.1")
    other = "aarch64" if HERE == "x86_64" else "x86_64"
    assert f"is not for {other}" in checked(ALONE, f"manylinux_2_17_{other}")
    assert "its tag is linux_" in checked(ALONE, f"linux_{HERE}")


def test_a_wheel_without_binaries_is_refused(source_dir, tmp_path):
    wheel = tmp_path / f"tensorcast-1.0-cp312-abi3-manylinux_2_17_{HERE}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tensorcast/__init__.py", "")
    result = subprocess.run([source_dir / "scripts/checks/wheels", wheel], capture_output=True, text=True)
    assert result.returncode == 1 and "it has no binaries" in result.stderr
