"""Tests of the gallery page in headless Chromium."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

SCENES = ("walks", "walls", "cliques", "reveals", "layers")
Open = Callable[..., Any]


def state(driver: Any, scene: str) -> str:
    """Return the HTML of a scene."""
    shown: str = driver.execute_script("return document.getElementById(arguments[0]).outerHTML", scene)
    return shown


def value(driver: Any, scene: str) -> float:
    return float(driver.execute_script("return document.getElementById(arguments[0]).dataset.value", scene))


def scroll_to(driver: Any, scene: str) -> None:
    driver.execute_script(
        "document.getElementById(arguments[0]).scrollIntoView({ behavior: 'instant' })", scene
    )


def wait_until(fulfilled: Callable[[], bool], seconds: float = 30) -> bool:
    """Return whether a condition becomes true within a number of seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if fulfilled():
            return True
        time.sleep(0.05)
    return False


def drag(driver: Any, scene: str, to: float) -> None:
    script = """
        const slider = document.getElementById(arguments[0]).querySelector(".time");
        slider.value = arguments[1];
        slider.dispatchEvent(new Event("input"));
    """
    driver.execute_script(script, scene, to)


def console_messages(driver: Any) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser")]


def requests(driver: Any) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def test_every_scene_moves_without_errors_and_requests(open_page: Open) -> None:
    driver = open_page()
    for scene in SCENES:
        scroll_to(driver, scene)
        begun, before = value(driver, scene), state(driver, scene)
        assert wait_until(lambda scene=scene, begun=begun: value(driver, scene) > begun + 0.3)
        assert state(driver, scene) != before
    assert console_messages(driver) == []
    urls = requests(driver)
    assert [url for url in urls if not url.startswith("data:")] == [driver.current_url]


def test_hidden_scenes_do_not_move(open_page: Open) -> None:
    driver = open_page()
    scroll_to(driver, "walks")
    assert wait_until(lambda: value(driver, "walks") > 0)
    assert value(driver, "layers") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_a_phone(open_page: Open, dark: bool) -> None:
    driver = open_page(360, dark=dark)
    for scene in SCENES:
        scroll_to(driver, scene)
        time.sleep(0.2)
    wide, outside = driver.execute_script("""
        const texts = [...document.querySelectorAll("svg text, p, button, input, select, label")];
        const shown = texts.map((one) => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width);
        return [
            document.documentElement.scrollWidth,
            shown.filter(([, box]) => box.left < -0.5 || box.right > innerWidth + 0.5).map(([text]) => text),
        ];
    """)
    assert wide <= 360
    assert outside == []
    assert console_messages(driver) == []


def test_reduced_motion_shows_the_end(open_page: Open) -> None:
    driver = open_page(reduced=True)
    for scene in SCENES:
        scroll_to(driver, scene)
        before = value(driver, scene)
        assert before > 0
        time.sleep(0.4)
        assert value(driver, scene) == before
    button = driver.find_element("css selector", "#cliques .play")
    button.click()
    assert wait_until(lambda: 0 < value(driver, "cliques") < 100)


def test_the_keyboard_plays_pauses_and_drags(open_page: Open) -> None:
    driver = open_page()
    scroll_to(driver, "cliques")
    button = driver.find_element("css selector", "#cliques .play")
    assert wait_until(lambda: value(driver, "cliques") > 0.2)
    button.send_keys(" ")
    paused_value = value(driver, "cliques")
    assert button.text == "Play"
    time.sleep(0.3)
    assert value(driver, "cliques") == paused_value
    slider = driver.find_element("css selector", "#cliques .time")
    slider.send_keys("\ue014")  # the right arrow
    assert value(driver, "cliques") == round(paused_value) + 1
    button.send_keys("\ue007")
    assert wait_until(lambda: value(driver, "cliques") > round(paused_value) + 1.1)


def test_bars_count_all_recorded_runs(open_page: Open) -> None:
    """At the end every panel counts its samples, and at the start none."""
    driver = open_page(reduced=True)
    counted, runs = driver.execute_script("""
        const recorded = JSON.parse(document.getElementById("recorded").textContent);
        return [
            [...document.querySelectorAll("#walks article")].map((one) => Number(one.dataset.outputs)),
            recorded.walks.walks.map((walk) => walk.runs.length),
        ];
    """)
    assert counted == runs
    facts = [one.text for one in driver.find_elements("css selector", "#walks .facts")]
    assert "53 % misplaced in the long run (exact)" in facts[0]
    drag(driver, "walks", 0)
    read = "return [...document.querySelectorAll('#walks article')].map((one) => one.dataset.outputs)"
    assert driver.execute_script(read) == ["0"] * 4


def test_walls_increase_with_the_temperature(open_page: Open) -> None:
    driver = open_page()
    walls = []
    for level in (0, 8, 24):
        drag(driver, "walls", level)
        numbers = [one.text for one in driver.find_elements("css selector", "#walls dd")]
        walls.append(float(numbers[0]))
        assert len(driver.find_element("css selector", "#walls .text").get_property("textContent")) == 160
    assert walls[0] < 0.01 < 1 < walls[1] < 20 < walls[2]


def test_a_new_coupling_restarts_the_scene(open_page: Open) -> None:
    driver = open_page()
    scroll_to(driver, "cliques")
    drag(driver, "cliques", 100)
    facts = "return [...document.querySelectorAll('#cliques .facts')].map((one) => one.textContent)"
    tight = driver.execute_script(facts)
    assert tight[0].startswith("<")
    driver.execute_script("document.querySelector('input[name=coupling][value=\"0\"]').click()")
    assert value(driver, "cliques") < 90
    drag(driver, "cliques", 100)
    assert driver.execute_script(facts) != tight


def test_evenings_appear_one_after_another(open_page: Open) -> None:
    driver = open_page()
    script = """
        const count = (one, selector) => one.querySelectorAll(selector).length;
        const panels = [...document.querySelectorAll("#reveals article")];
        return panels.map((one) => [count(one, ".copy:not(.waiting)"), count(one, ".friend.open")]);
    """
    counts = []
    for at in (0, 1.5, 200):
        driver.execute_script("document.querySelector('#reveals .time').step = 0.5")
        drag(driver, "reveals", at)
        counts.append(driver.execute_script(script))
    # After 1.5 evenings, two of four rounds are over.
    assert counts == [[[0, 8]] * 3, [[1, 4]] * 3, [[200, 0]] * 3]


def test_layers_wake_in_the_order_of_their_rows(open_page: Open) -> None:
    driver = open_page()
    awake = []
    for at in (0, 1.5, 2.9):
        drag(driver, "layers", at)
        awake.append(int(driver.find_element("css selector", "#layers").get_attribute("data-awake")))
    assert awake == [0, 1, 3]
    assert len(driver.find_elements("css selector", "#layers option")) == 24
