# SPDX-License-Identifier: Apache-2.0
"""Each source file names its licence."""

import subprocess


def test_source_files_name_their_licence(source_dir):
    result = subprocess.run([source_dir / "scripts/licences"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_files_without_are_found_and_mended(source_dir, tmp_path):
    script = (source_dir / "scripts/licences").read_text()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/licences").write_text(script)
    texts = {
        "a.cpp": '#include "a.hpp"\n\n#include <vector>\n',
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
    assert {line.split(":")[0] for line in found.stdout.splitlines()} == {"a.cpp", "b.py", "c.h", "scripts/d", "CMakeLists.txt"}
    assert run("--fix").returncode == 0 and run().returncode == 0
    mark = "SPDX-License-Identifier: Apache-2.0"
    assert (tmp_path / "a.cpp").read_text() == f'#include "a.hpp"\n// {mark}\n#include <vector>\n'
    assert (tmp_path / "b.py").read_text().splitlines()[:2] == ["#!/usr/bin/env python3", f"# {mark}"]
    assert (tmp_path / "c.h").read_text() == f"/* Text. */\n/* {mark} */\nint c(void);\n"
    assert (tmp_path / "scripts/d").read_text() == f"#!/bin/sh\n# Text.\n# {mark}\nexit 0\n"
    assert (tmp_path / "testdata/e.py").read_text() == texts["testdata/e.py"]
