# SPDX-License-Identifier: Apache-2.0
"""The software bill of materials: every library that the build asks for is in it, and a wheel takes it unharmed."""

import base64
import hashlib
import json
import re
import subprocess
import zipfile

import pytest


def made(source_dir, *arguments):
    return subprocess.run([source_dir / "scripts/make/sbom", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("product", ["wheel", "static", "deb"])
def test_it_is_cyclonedx(source_dir, product):
    bill = json.loads(made(source_dir, product))
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    own = bill["metadata"]["component"]
    assert own["name"] == "tensorcast" and re.fullmatch(r"\d+\.\d+\.\d+", own["version"])
    refs = [row["bom-ref"] for row in bill["components"]]
    assert len(set(refs)) == len(refs) >= 9 and bill["dependencies"] == [{"ref": "tensorcast", "dependsOn": refs}]
    for row in bill["components"]:
        assert row["version"] and row["purl"].startswith("pkg:") and row["licenses"]
    assert made(source_dir, product) == json.dumps(bill, indent=2) + "\n"  # the same bytes each time


def test_no_library_of_the_build_is_forgotten(source_dir):
    text = (source_dir / "scripts/bootstrap").read_text()
    group = re.search(r"^build_packages=\(\n(.*?)^\)", text, re.MULTILINE | re.DOTALL)[1]
    asked = set(re.findall(r"[\w.+-]+-dev\b", re.sub(r"#.*", "", group)))
    listed = set(re.findall(r'"([\w.+-]+-dev)"', (source_dir / "scripts/make/sbom").read_text()))
    assert asked == listed


def test_a_wheel_takes_it(source_dir, tmp_path):
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("x.py", (2001, 2, 3, 4, 5, 6)), "1")
        archive.writestr(zipfile.ZipInfo("x-1.dist-info/RECORD", (2001, 2, 3, 4, 5, 6)), 'x.py,sha256=abc,1\nx-1.dist-info/RECORD,,\n')
    made(source_dir, "wheel", "--into", wheel)
    first = wheel.read_bytes()
    made(source_dir, "wheel", "--into", wheel)
    assert wheel.read_bytes() == first
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == ["x.py", "x-1.dist-info/sboms/tensorcast.cdx.json", "x-1.dist-info/RECORD"]
        assert {info.date_time for info in archive.infolist()} == {(2001, 2, 3, 4, 5, 6)}
        data = archive.read("x-1.dist-info/sboms/tensorcast.cdx.json")
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines = archive.read("x-1.dist-info/RECORD").decode().splitlines()
    assert lines == ["x.py,sha256=abc,1", f"x-1.dist-info/sboms/tensorcast.cdx.json,sha256={digest},{len(data)}", "x-1.dist-info/RECORD,,"]


def test_each_product_gets_its_bill(source_dir):
    for script, product in (("wheel", "wheel --into"), ("static", "static >"), ("package", "deb >")):
        assert f"scripts/make/sbom {product}" in (source_dir / "scripts" / script).read_text()
    assert "${TENSORCAST_SBOM}" in (source_dir / "cmake/TensorcastPackage.cmake").read_text()
