# SPDX-License-Identifier: Apache-2.0
"""Sums up what the test programs reported: totals.py RESULTS [--failed-stage] prints `N passed, M failed`.

GoogleTest programs report their cases in gtest/*.xml; ctest.xml then has one entry each, which is not counted again.
Those of other CPUs report theirs in arm/*.xml.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def cases(path):
    """(run, failed) of one JUnit file; skipped cases were not run."""
    run = failed = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        not_run = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled", "skipped")
        run += not not_run
        failed += case.find("failure") is not None or case.find("error") is not None
    return run, failed


def main(folder, failed_stage):
    run = failed = 0
    gtest = sorted(folder.glob("gtest/*.xml"))
    arm = sorted(folder.glob("arm/*.xml"))
    for path in [*gtest, *arm, folder / "pytest.xml", folder / "newest-onnx.xml", folder / "python-package.xml"]:
        if path.exists():
            more_run, more_failed = cases(path)
            run, failed = run + more_run, failed + more_failed
    if (folder / "ctest.xml").exists():
        programs, failed_programs = cases(folder / "ctest.xml")
        run += max(0, programs - len(gtest))
        failed = max(failed, failed_programs)
    if failed_stage:
        failed = max(failed, 1)
    print(f"{max(0, run - failed)} passed, {failed} failed")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), "--failed-stage" in sys.argv[2:])
