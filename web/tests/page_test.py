# SPDX-License-Identifier: Apache-2.0
"""Each view in Chromium: what it shows, by mouse and by keyboard, on a phone and in the dark, and axe's rules."""

import json
import os
import pathlib
import subprocess
from urllib.parse import quote

import pytest
from axe_core_python.sync_playwright import Axe
from PIL import Image

VIEWS = {
    "number": "#value=0.1",
    "number-bits": "#value=16777217&type=float32&opset=13",
    "type": "#view=type&type=float8_e4m3fn",
    "type-wide": "#view=type&type=float64&scale_of_line=logarithmic",
    "pair": "#view=pair&source=float16&type=float8_e4m3fn",
    "pair-versions": "#view=pair&source=float32&type=float8_e4m3fnuz",
    "blocks": "#view=blocks&outliers=true",
    "promotion": "#view=promotion&a=int32&b=float16&rules=numpy",
    "file": "#view=file",
}


def test_a_number_is_shown_with_its_bits_and_neighbours(opened):
    page = opened("#value=0.1&type=float8_e4m3fn")
    assert page.inner_text("#exact") == "0.1015625"
    text = page.inner_text("main")
    for part in ("0x1D", "0.0015625", "rounded", "0x1C 0.09375", "0x1E 0.109375", "gap to both: 0.0078125", "1.625 × 2"):
        assert part in text, part
    assert page.locator(".types tbody tr").count() == 32
    rows = page.locator("#roundings tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        ["0x1C", "0.09375", "20.0 %", "toward_zero, toward_negative"],
        ["0x1D", "0.1015625", "80.0 %", "nearest_even, nearest_away, toward_positive, to_odd"],
    ]
    page.get_by_role("link", name="toward_zero").click()
    assert page.inner_text("#exact") == "0.09375"


@pytest.mark.parametrize(
    ("typed", "type_", "exact"),
    [
        ("1/3", "float16", "0.333251953125"),
        ("1/3", "float64", "0.333333333333333314829616256247390992939472198486328125"),
        ("0x1.8p3", "int8", "12"),
        ("2^-9", "float8_e4m3fn", "0.001953125"),
        ("-2^10", "float16", "-1024"),
        ("0b0111", "float4_e2m1fn", "6"),
        ("0x7F", "float8_e4m3fn", "NaN"),
        ("1_000", "int16", "1000"),
        ("9007199254740993/9007199254740992", "float64", "1"),
    ],
)
def test_numbers_are_read_as_people_write_them(opened, typed, type_, exact):
    page = opened(f"#value={quote(typed)}&type={type_}")
    assert page.inner_text("#exact") == exact


def test_typing_changes_the_address_and_the_address_the_page(opened):
    page = opened()
    page.fill("#value", "448")
    assert page.evaluate("location.hash") == "#value=448"
    assert page.evaluate("document.activeElement.id") == "value"
    page.select_option("#type", "float8_e5m2")
    assert page.inner_text("#exact") == "448"
    page.evaluate("location.hash = '#value=1e9&type=float8_e5m2'")
    page.wait_for_function("document.querySelector('#exact').innerText === '57344'")
    assert page.input_value("#value") == "1e9"


def test_a_bit_is_turned_by_click_and_by_key(opened):
    page = opened("#value=1&type=float16")
    page.click('.bit[data-place="15"]')
    assert page.inner_text("#exact") == "-1" and page.input_value("#value") == "0xBC00"
    assert page.evaluate("document.activeElement.dataset.place") == "15"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    assert page.inner_text("#exact") == "-131072" or page.inner_text("#exact") != "-1"
    code = int(page.input_value("#value"), 16)
    assert code == 0xBC00 ^ 0x4000


def test_options_change_the_result(opened):
    page = opened("#value=1000&type=float8_e4m3fn")
    assert page.inner_text("#exact") == "448"
    page.click("summary:has-text('Options of Cast')")
    page.get_by_label("saturate", exact=True).select_option("false")
    assert page.inner_text("#exact") == "NaN" and "saturate=false" in page.url
    page.get_by_label("opset", exact=True).select_option("13")
    assert "is newer than" in page.inner_text("main") or "opset" in page.inner_text(".card .error")


def test_wrong_numbers_are_said_and_the_page_goes_on(opened):
    page = opened()
    page.fill("#value", "1x")
    assert '"1x"' in page.inner_text("[role=alert]")
    page.fill("#value", "1/0")
    assert "other than 0" in page.inner_text("[role=alert]")
    page.fill("#value", "2")
    assert page.inner_text("#exact") == "2"


def test_a_type_has_all_its_codes(opened, tcast):
    page = opened("#view=type&type=float8_e5m2")
    assert page.locator("table.codes td a").count() == 256
    assert "All 248 finite numbers" in page.inner_text("main")
    text = page.locator("table.codes td a").nth(0x7B).get_attribute("title")
    assert text == "0x7B = 57344"
    page.locator("table.codes td a").nth(0x3C).click()
    assert page.inner_text("#exact") == "1"


@pytest.mark.parametrize("type_", ["float4_e2m1fn", "float6_e3m2fn", "float8_e8m0fnu", "int4", "uint2", "float32", "int64", "bool", "string"])
def test_every_kind_of_type_is_shown(opened, type_):
    page = opened(f"#view=type&type={type_}")
    assert page.inner_text("main .card h2").startswith(type_)


def test_two_types_have_exact_limits(opened):
    page = opened("#view=pair&source=float32&type=float8_e4m3fn")
    text = page.inner_text("section[aria-label='What happens']")
    assert "-3.40282346638…e38" in text and "464" in text and "464.000030517578125" in text and "saturated" in text
    page = opened("#view=pair&source=float16&type=float64")
    assert "nothing is lost" in page.inner_text("section[aria-label='What happens']")
    page = opened("#view=pair&source=int32&type=uint8")
    text = page.inner_text("section[aria-label='What happens']")
    assert "wrapped" in text and "255" in text


def test_versions_of_onnx_are_side_by_side(opened):
    page = opened("#view=pair&source=float32&type=float8_e4m3fnuz")
    text = page.inner_text("section[aria-label='Versions of ONNX']")
    assert "opset 19 to 23" in text and "opset 24 to 28" in text
    page = opened("#view=pair&source=float32&type=float16")
    assert "same in every version" in page.inner_text("section[aria-label='Versions of ONNX']")


def test_the_matrix_has_all_pairs(opened):
    page = opened("#view=pair&source=float32&type=bfloat16")
    assert page.locator("table.matrix td.fate").count() == 31 * 31
    cell = "table.matrix a[aria-label^='{}:']"
    assert page.inner_text(cell.format("float16 to float32")) == "="
    assert page.inner_text(cell.format("int64 to float64")) == "≈"
    assert page.inner_text(cell.format("float32 to int8")) == "↻"
    assert page.inner_text(cell.format("float32 to float8_e4m3fn")) == "⊤"
    page.focus("table.matrix td.chosen a")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash.includes('type=float8_e4m3fn') || !location.hash.includes('type=bfloat16')")


def test_promotion_shows_the_rules_side_by_side(opened, tcast):
    page = opened("#view=promotion&a=int32&b=float16")
    answers = page.locator(".answer").all_inner_texts()
    assert len(answers) == 6
    for rules, text in zip(["openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"], answers, strict=True):
        done = subprocess.run([tcast, "promote", "int32", "float16", "--rules", rules], capture_output=True, text=True)
        assert (done.stdout.split()[0] if done.returncode == 0 else "none") in text.split("\n"), rules
    assert page.locator("table.matrix td").count() == 32 * 32 + 1
    assert page.locator("svg.lattice rect").count() > 10
    assert page.locator("svg.small-lattice").count() == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_keep_the_rules_of_accessibility(opened, name, scheme):
    page = opened(VIEWS[name], color_scheme=scheme)
    results = Axe().run(page)
    problems = [(v["id"], v["help"], [node["html"][:120] for node in v["nodes"]][:3]) for v in results["violations"]]
    assert problems == [], problems


@pytest.mark.parametrize("name", VIEWS)
def test_views_fit_a_phone(opened, name):
    page = opened(VIEWS[name], viewport={"width": 360, "height": 740}, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_views_are_reached_by_keyboard(opened):
    page = opened()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.slice(0, 20)"))
    assert {"value", "type", "from", "One type", "Promotion", "Your file"} <= seen


def test_the_page_works_from_a_server(browser, server):
    page = browser.new_page()
    page.goto(f"{server}/index.html#value=0.1")
    page.wait_for_selector("body[data-ready]")
    answer = page.evaluate("tensorcast.explain('0.1', 'float16')")
    assert answer[0]["results"][0]["code"] == "0x2E66"
    page.click("text=Blocks")
    page.wait_for_selector("table.elements")
    page.close()


def test_the_policy_forbids_every_connection(browser, server):
    page = browser.new_page()
    page.goto(f"{server}/index.html")
    page.wait_for_selector("body[data-ready]")
    for address in ("kernels.js", "https://x.example/"):
        assert page.evaluate("address => fetch(address).then(() => 'sent', () => 'refused')", address) == "refused"
    page.close()


def test_other_scripts_may_ask(opened, tcast):
    page = opened()
    done = subprocess.run([tcast, "explain", "--json", "0.1"], capture_output=True, text=True)
    assert page.evaluate("tensorcast.explain('0.1')") == json.loads(done.stdout)
    assert page.evaluate("tensorcast.types.length") == 32


@pytest.mark.skipif("TENSORCAST_PICTURES" not in os.environ, reason="scripts/checks/web --pictures takes them")
@pytest.mark.parametrize("name", [name for name in VIEWS if "-" not in name])
def test_pictures(opened, name):
    page = opened(VIEWS[name], viewport={"width": 1100, "height": 760})
    if name == "file":
        page.click("text=try a made-up one")
        page.click("text=model.layers.0.mlp.weight")
        page.wait_for_selector("#study")
        page.click("#convert")
        page.wait_for_selector("#download")
    page.wait_for_timeout(300)
    folder = pathlib.Path(os.environ["TENSORCAST_PICTURES"])
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)
    with Image.open(folder / f"{name}.png") as picture:
        cut = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, 1330)))
    cut.quantize(96, dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)
