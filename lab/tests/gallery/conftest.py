"""Fixtures with the gallery page, which is built once, and a browser."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trialogue_lab.gallery.document import render_gallery

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the page."""
    file = tmp_path_factory.mktemp("gallery") / "gallery.html"
    file.write_text(render_gallery(ROOT / "results"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def browser() -> Iterator[Callable[..., Any]]:
    """Open an address in headless Chromium with a width in pixels. Tests are skipped without Chromium."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver_program = shutil.which("chromedriver")
    if chromium is None or driver_program is None:
        pytest.skip(
            "no Chromium here, or no chromedriver (on Debian: apt-get install chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.add_argument("--headless=new")
    options.add_argument("--disable-dev-shm-usage")
    if os.geteuid() == 0:  # Chromium has no sandbox for root
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_program))
    driver.set_script_timeout(120)

    def opened(address: str, width: int = 1200, *, reduced: bool = False, dark: bool = False) -> Any:
        shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        features = [
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        ]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for kind in ("browser", "performance"):
            driver.get_log(kind)
        driver.get(address)
        return driver

    yield opened
    driver.quit()


@pytest.fixture(scope="session")
def open_page(browser: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Open the gallery in headless Chromium with a width in pixels."""
    page: Path = request.getfixturevalue("page")  # not built without a browser
    return partial(browser, page.as_uri())
