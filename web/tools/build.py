# SPDX-License-Identifier: Apache-2.0
"""Makes the page: build.py OBJECTS OUT. OBJECTS has the modules of compile.py and keeps what it compiled.

Without OUT, it makes no page: it compiles kernels.wasm, the module next to its limit, and checks its size.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import shutil
import sys

import brotli

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from bundle import bundle  # noqa: E402
from compile import ROOT, compile_modules  # noqa: E402

PAGE = ROOT / "web/page"
LARGEST = {"explain": 130_000, "kernels": 250_000}  # bytes after brotli


def script(text: str, attributes: str = "") -> str:
    if "</script" in text:
        raise ValueError("a script that ends itself")
    return f"<script{attributes}>\n{text}\n</script>"


def policy(text: str) -> str:
    """What browsers may load and run for the page: its own scripts, and no connection, so that files stay where they are."""
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    rules = (
        "default-src 'none'",
        f"script-src 'self' 'wasm-unsafe-eval' {hashes}",  # 'self': kernels.js
        "worker-src blob:",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def base64_of(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def make_modules(objects: pathlib.Path, modules: tuple[str, ...]) -> None:
    compile_modules(objects, modules)
    for module in modules:
        largest = LARGEST[module]
        size = len(brotli.compress((objects / f"{module}.wasm").read_bytes(), quality=11))
        print(f"web: {module}.wasm: {size} bytes after brotli")
        if size > largest:
            raise SystemExit(f"web: {module}.wasm is over {largest} bytes after brotli")


def build(objects: pathlib.Path, out: pathlib.Path) -> None:
    make_modules(objects, tuple(LARGEST))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for module in LARGEST:
        shutil.copy(objects / f"{module}.wasm", out)
    # The page has the small module inside; the other is a script beside it, which pages on a disk may load.
    (out / "kernels.js").write_text(f'globalThis.tensorcastKernels = "{base64_of(objects / "kernels.wasm")}";\n')
    module = f'globalThis.tensorcastModule = "{base64_of(objects / "explain.wasm")}";'
    parts = {
        "<!-- style -->": f"<style>\n{(PAGE / 'style.css').read_text()}</style>",
        "<!-- scripts -->": "\n".join(
            [
                script(module),
                script(bundle(PAGE, "worker.js"), ' type="text/plain" id="worker"'),
                script(bundle(PAGE, "main.js")),
            ]
        ),
    }
    text = (PAGE / "index.html").read_text()
    for mark, part in parts.items():
        if text.count(mark) != 1:
            raise ValueError(f"index.html has no {mark}")
        text = text.replace(mark, part)
    (out / "index.html").write_text(text.replace("<!-- policy -->", policy(text)))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        make_modules(pathlib.Path(sys.argv[1]), ("kernels",))
    else:
        build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
