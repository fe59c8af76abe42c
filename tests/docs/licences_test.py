# SPDX-License-Identifier: Apache-2.0
"""Each source file names its licence."""

import subprocess

MARK = "SPDX-License-Identifier: Apache-2.0"


def test_source_files_name_their_licence(source_dir):
    result = subprocess.run([source_dir / "scripts/licences"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_files_without_are_found_and_mended(source_dir, tmp_path):
    script = (source_dir / "scripts/licences").read_text()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/licences").write_text(script)
    texts = {
        "a.cpp": '#include "a.hpp"\n\n#include <vector>\n',
        "inside.hpp": f"// Text.\n#pragma once\n// {MARK}\n#include <vector>\n",
        "right.js": f"// {MARK}\n// Text.\n",
        "b.py": '#!/usr/bin/env python3\n"""Text."""\n',
        "c.h": "/* Text. */\n\nint c(void);\n",
        "scripts/d": "#!/bin/sh\n# Text.\nexit 0\n",
        "CMakeLists.txt": "project(x)\n",
        "testdata/e.py": "x = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    def run(*arguments):
        return subprocess.run(["python3", "scripts/licences", *arguments], cwd=tmp_path, capture_output=True, text=True)

    found = run()
    assert found.returncode == 1
    assert {line.split(":")[0] for line in found.stdout.splitlines()} == {
        "a.cpp", "inside.hpp", "b.py", "c.h", "scripts/d", "CMakeLists.txt"}
    assert run("--fix").returncode == 0 and run().returncode == 0
    text = {name: (tmp_path / name).read_text() for name in texts}
    assert text["a.cpp"] == f'// {MARK}\n#include "a.hpp"\n\n#include <vector>\n'
    assert text["inside.hpp"] == f"// {MARK}\n// Text.\n#pragma once\n\n#include <vector>\n"
    assert text["right.js"] == texts["right.js"]
    assert text["b.py"].splitlines()[:2] == ["#!/usr/bin/env python3", f"# {MARK}"]
    assert text["c.h"] == f"/* {MARK} */\n/* Text. */\n\nint c(void);\n"
    assert text["scripts/d"] == f"#!/bin/sh\n# Text.\n# {MARK}\nexit 0\n"
    assert text["testdata/e.py"] == texts["testdata/e.py"]
