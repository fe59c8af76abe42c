# SPDX-License-Identifier: Apache-2.0
"""The page in Chromium: as a file, and from a server of this machine. Nothing else is reached."""

import functools
import http.server
import os
import pathlib
import shutil
import threading

import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "build/web"


@pytest.fixture(scope="session")
def tcast():
    return os.environ["TCAST"]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The page's modules for Node."""
    if shutil.which("node") is None:
        pytest.skip("no node")
    folder = tmp_path_factory.mktemp("modules")
    for module in (ROOT / "web/page").glob("*.js"):
        shutil.copy(module, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


class Page:
    """A page whose console stays empty, and which asks nothing of the network."""

    def __init__(self, browser, address, **context):
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.address = address
        self.problems, self.requests = [], []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, state=""):
        self.page.goto("about:blank")
        self.page.goto(self.address + state)
        self.page.wait_for_selector("body[data-ready]")
        self.page.wait_for_selector("text=loading the kernels", state="hidden")
        self.page.wait_for_selector("text=/comparing \\d+ of/", state="hidden")
        return self.page

    def close(self):
        self.context.close()
        assert self.problems == []
        local = (self.address.rsplit("/", 1)[0], "about:", "blob:", "data:")
        assert [url for url in self.requests if not url.startswith(local)] == []


@pytest.fixture
def opened(browser):
    """opened(state, **context): the page at a state."""
    pages = []

    def open_page(state="", **context):
        pages.append(Page(browser, (PAGE / "index.html").as_uri(), **context))
        return pages[-1].open(state)

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def server():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=PAGE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
