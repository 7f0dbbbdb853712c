"""The page of a run in Chromium: from disk, with and without scripts, on paper, with harmful names, and while it follows a run."""

import csv
import io
import queue
import re
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree as xml
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from browser import Browser, screenshots
from runs import ENDS_SCRIPT, LONG, PROGRAM, QUICKSTART, Run, engine, sweep_page

RIGHT, LEFT, DOWN, END, ENTER, ESCAPE = "\ue014", "\ue012", "\ue015", "\ue010", "\ue007", "\ue00c"
WIDTHS = (360, 420, 800, 1200, 1600)
TABLE = """
    const rows = [...document.querySelector(arguments[0]).querySelectorAll("tr")];
    return rows.map((row) => [...row.children].map((cell) => cell.textContent));
"""
REPLAY = """
    const entries = [...document.querySelectorAll(".replay dd")].map((entry) => [entry.dataset.of, entry.firstChild.textContent]);
    return { title: document.querySelector(".replay h3").textContent, ...Object.fromEntries(entries) };
"""


def number(text):
    """A number as the page writes it."""
    text = text.strip().removesuffix("%").replace(",", "").strip()
    return float(text.removesuffix("k")) * 1000 if text.endswith("k") else float(text)


def setUpModule():
    global run
    run = Run()


def tearDownModule():
    run.remove()


class Page(unittest.TestCase):
    """With scripts, from disk."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.open()

    def open(self, address=""):
        self.browser.open("about:blank")
        self.browser.requests()
        self.browser.errors()
        self.browser.open(run.page.as_uri() + address)
        self.browser.wait("return document.readyState === 'complete' && document.documentElement.classList.contains('scripted')")

    def step(self):
        return self.browser.run("return Number(document.querySelector('input.step').value)")

    def show(self, group):
        self.browser.run("const select = document.querySelector('select.group'); select.value = arguments[0]; select.dispatchEvent(new Event('change', { bubbles: true }))", group)

    def test_it_opens_from_disk_and_asks_for_nothing_else(self):
        asked = self.browser.requests()
        self.assertEqual([address.split(":")[0] for address in asked if not address.startswith("data:")], ["file"], asked)
        self.assertEqual(self.browser.errors(), [])

    def test_a_chart_is_one_picture_to_which_the_script_adds_numbers(self):
        charts, pictures, numbers = self.browser.run(
            """
            const figures = [...document.querySelectorAll("figure[data-chart]")];
            const seen = figures.flatMap((figure) => [...figure.querySelectorAll("svg, canvas")]).filter((each) => each.checkVisibility());
            return [figures.length, seen.length, figures.filter((figure) => figure.querySelector(".legend output").textContent).length];
            """
        )
        self.assertGreater(charts, 5)
        self.assertEqual((pictures, numbers), (charts, charts))

    def test_the_first_screen_says_whether_it_was_worth_it(self):
        for what in ("h1", ".tiles", "[data-chart=accuracy] svg"):
            below = self.browser.run("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", what)
            self.assertLess(below, 800, what)

    def test_an_episode_is_replayed_as_the_record_has_it(self):
        episodes = [episode["episode"] for episode in run.events("episode_finished") if episode["round"] == 2]
        self.show("round")
        for episode in episodes:
            place = f"div.group:not([hidden]) .episode[data-episode=e{episode}]"
            self.browser.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", place)
            self.browser.click(place + " .chosen")
            self.browser.keys("input.step", END)
            steps = {each["step"]: each["data"] for each in run.events("env_step") if each["episode"] == episode}
            decisions = {each["step"]: each["data"] for each in run.events("decision") if each["episode"] == episode}
            for step in (20, 19, 18):
                shown = self.browser.run(REPLAY)
                self.assertIn(f"step {step}", shown["title"])
                self.assertAlmostEqual(number(shown["accuracy"]), steps[step]["val_accuracy"], delta=0.01)
                self.assertAlmostEqual(number(shown["training accuracy"]), steps[step]["train_accuracy"], delta=0.01)
                self.assertEqual(number(shown["parameters"]), steps[step]["params_total"])
                self.assertAlmostEqual(number(shown["reward"]), decisions[step]["reward"], delta=0.001)
                self.browser.keys("input.step", LEFT)
            self.browser.keys("input.step", RIGHT * 3)

    def test_it_shows_what_the_policy_gave_each_operation(self):
        decision = run.events("decision")[0]
        best = self.browser.run("return JSON.parse(document.getElementById('data').textContent).episodes.find((each) => each.decisions[0]?.thought.length)")
        self.open(f"#growth&episode={best['key']}&step=1")
        bars = self.browser.run("return [...document.querySelectorAll('.replay .given')].map((bar) => [bar.closest('.measure').firstChild.textContent, bar.style.width])")
        self.assertEqual(len(bars), len(best["decisions"][0]["thought"]))
        self.assertAlmostEqual(sum(float(width.removesuffix("%")) for _, width in bars), 100, delta=0.5)
        self.assertIn("op_probs", decision["data"])

    def test_playing_goes_to_the_end_and_can_be_held(self):
        self.browser.click("button.play")
        self.browser.wait("return Number(document.querySelector('input.step').value) > 3")
        self.browser.click("button.play")
        held = self.step()
        time.sleep(0.4)
        self.assertEqual(self.step(), held)
        self.browser.click("button.play")
        self.browser.wait("return document.querySelector('button.play').textContent.includes('Play')")
        self.assertEqual(self.step(), 20)

    def test_keys_choose_an_episode_and_step(self):
        chosen = "return document.querySelector('div.group:not([hidden]) .is-chosen').dataset.episode"
        first = self.browser.run("const first = document.querySelector('.episode'); first.focus(); return first.dataset.episode")
        self.browser.press(ENTER)
        self.assertEqual(self.browser.run(chosen), first)
        self.browser.press(DOWN)
        self.assertNotEqual(self.browser.run(chosen), first)
        self.browser.press(LEFT)
        self.assertEqual(self.step(), 19)
        cursor = self.browser.run("return [...document.querySelectorAll('.cursor')].map((cursor) => cursor.getAttribute('x1'))")
        self.assertEqual(len(set(cursor)), 1, "the cursor is in the same step of all lanes")
        self.browser.press("?")
        self.assertIn("this list", self.browser.run("return document.querySelector('dialog').textContent"))
        self.browser.press(ESCAPE)
        self.browser.wait("return !document.querySelector('dialog')")

    def test_the_groups_are_shown_one_at_a_time(self):
        seen = "return [...document.querySelectorAll('div.group')].filter((group) => group.checkVisibility()).map((group) => group.dataset.group)"
        self.assertEqual(self.browser.run(seen), ["best"])
        self.show("round")
        self.assertEqual(self.browser.run(seen), ["round"])

    def test_it_opens_on_the_episode_whose_network_it_shows(self):
        chosen = self.browser.run("return document.querySelector('.is-chosen > title').textContent")
        network = self.browser.run("return document.querySelector('#network .note').textContent")
        parts = self.browser.run("return document.querySelector('#worth figcaption').textContent")
        self.assertIn(chosen + ";", network)
        self.assertIn(chosen + ".", parts)

    def test_an_address_shows_the_episode_and_step_again(self):
        self.browser.keys("input.step", LEFT * 4)
        self.browser.wait("return location.hash.includes('step=16')")
        address = self.browser.run("return location.hash")
        wanted = self.browser.run(REPLAY)
        self.open(address)
        self.assertEqual(self.browser.run(REPLAY), wanted)
        self.open("#growth&episode=none&step=-7")
        self.assertEqual(self.step(), 1)
        self.assertEqual(self.browser.errors(), [])

    def test_the_numbers_are_those_of_the_record(self):
        rows = self.browser.run(TABLE, "[data-chart=accuracy] details table")
        mean = rows[0].index("mean")
        rounds = run.events("round_finished")
        self.assertEqual(len(rows), len(rounds) + 1)
        for row, finished in zip(rows[1:], rounds, strict=True):
            self.assertAlmostEqual(number(row[mean]), finished["data"]["accuracy_mean"], delta=0.001)
        shown = run.shown()["results"]
        page = self.browser.run("return document.querySelector('header').textContent")
        self.assertIn(f"{shown['average']['accuracy']:.1f}", page)
        self.assertIn(f"{shown['alone']['accuracy']:.1f} ±", page)
        worth = self.browser.run("return document.getElementById('worth').textContent")
        best = max(shown["committed"], key=lambda seed: seed["last_contribution"] or 0)
        self.assertIn(best["seed_id"], worth)
        self.assertIn(f"{best['last_contribution']:+.2f}", worth)

    def test_numbers_taken_away_are_those_of_the_table(self):
        self.browser.click("[data-chart=accuracy] .tools button")
        taken = list(csv.reader(io.StringIO(self.browser.downloaded("accuracy.csv"))))
        table = self.browser.run(TABLE, "[data-chart=accuracy] details table")
        self.assertEqual(taken[0], ["round", "middle half, low", "middle half, high", "mean", "best env at any step"])
        self.assertEqual(len(taken), len(table))
        for ours, theirs in zip(taken[1:], table[1:], strict=True):
            theirs = [theirs[0], *theirs[1].split(" to "), *theirs[2:]]
            for one, other in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(float(one), number(other), delta=0.001)

    def test_a_picture_taken_away_needs_no_style_sheet(self):
        self.browser.click("[data-chart=accuracy] .tools button:last-child")
        root = xml.fromstring(self.browser.downloaded("accuracy.svg"))
        paths = [each for each in root.iter("{http://www.w3.org/2000/svg}path")]
        self.assertTrue(any(each.get("stroke", "").startswith("rgb") for each in paths))
        self.assertFalse([each for each in root.iter() if each.get("class")])

    def test_a_pointer_reads_off_a_chart_and_all_others_over_the_same(self):
        shown = "return [...document.querySelector(arguments[0]).querySelectorAll('.legend output')].map((output) => output.textContent)"
        newest = self.browser.run(shown, "[data-chart=accuracy]")
        rounds = run.events("round_finished")
        self.assertEqual(newest[0], str(len(rounds)))
        self.browser.run("document.querySelector('[data-chart=accuracy]').scrollIntoView()")
        x, y, width, height = self.browser.run("const at = document.querySelector('[data-chart=accuracy] svg').getBoundingClientRect(); return [at.x, at.y, at.width, at.height]")
        self.browser.pointer((x + 0.08 * width, y + height / 2))
        first = self.browser.run(shown, "[data-chart=accuracy]")
        self.assertEqual(first[0], "1")
        self.assertAlmostEqual(number(first[2]), rounds[0]["data"]["accuracy_mean"], delta=0.01)
        self.assertEqual(self.browser.run(shown, "[data-chart=speed]")[0], "1")
        self.browser.pointer((x + width / 2, y + height + 40))
        self.assertEqual(self.browser.run(shown, "[data-chart=accuracy]"), newest)

    def test_a_legend_switches_its_curve(self):
        entry = "[data-chart=accuracy] .legend [role=button]"
        off = "return document.querySelectorAll('[data-chart=accuracy] g.is-off').length"
        self.browser.click(entry)
        self.assertEqual(self.browser.run(off), 1)
        self.browser.run("document.querySelector(arguments[0]).focus()", entry)
        self.browser.press(ENTER)
        self.assertEqual(self.browser.run(off), 0)
        self.assertEqual(self.browser.errors(), [])

    def test_everything_that_can_be_pressed_is_reached_by_the_keyboard(self):
        missed = self.browser.run("return [...document.querySelectorAll('figure[data-chart] .legend li:not(.at), .episode')].filter((each) => each.tabIndex !== 0).length")
        self.assertEqual(missed, 0)

    def test_nothing_overflows_at_any_width_in_light_and_dark(self):
        folder = screenshots()
        for scheme in ("light", "dark"):
            self.browser.media(prefers_color_scheme=scheme)
            for width in WIDTHS:
                self.browser.size(width, 800)
                self.open()
                across = self.browser.run("return document.documentElement.scrollWidth")
                self.assertLessEqual(across, width, scheme)
                narrow = self.browser.run("return [...document.querySelectorAll('figure[data-chart] svg')].filter((each) => each.getBoundingClientRect().width < 200).length")
                self.assertEqual(narrow, 0)
                if folder:
                    self.browser.screenshot(folder / f"page-{width}-{scheme}.png")
                    self.browser.screenshot(folder / f"page-{width}-{scheme}-whole.png", whole=True)
            lightness = self.browser.run("return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]")
            self.assertEqual(lightness > 128, scheme == "light")
        self.browser.media(prefers_color_scheme="light")
        self.browser.size(1280, 800)

    def test_it_prints_on_pages(self):
        self.browser.media(prefers_color_scheme="dark")
        printed = self.browser.print()
        self.browser.media(prefers_color_scheme="light")
        self.assertTrue(printed.startswith(b"%PDF-"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", printed)), 1)
        if screenshots():
            (screenshots() / "page.pdf").write_bytes(printed)

    def test_harmful_names_stay_texts(self):
        page = run.hostile()
        self.browser.open(page.as_uri())
        self.browser.wait("return document.querySelector('.legend output')")
        scripts, pictures, text = self.browser.run("return [document.scripts.length, document.images.length, document.body.textContent]")
        self.browser.open(run.page.as_uri())
        self.assertEqual(scripts, self.browser.run("return document.scripts.length"))
        self.browser.open(page.as_uri())
        self.assertEqual(pictures, 0)
        self.assertIn(ENDS_SCRIPT, text)
        for episode in self.browser.run("return [...document.querySelectorAll('.episode')].map((each) => each.dataset.episode)"):
            self.browser.run("location.hash = arguments[0]", f"growth&episode={episode}&step=12")
            self.browser.wait("return document.querySelector('.is-chosen').dataset.episode === arguments[0]", episode)
            replay = self.browser.run("return document.querySelector('.replay').textContent")
            self.assertNotIn("\u202e", replay)
        self.assertIsNone(self.browser.dialog())
        self.assertEqual(self.browser.errors(), [])
        for width in WIDTHS:
            self.browser.size(width, 800)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
        self.browser.size(1280, 800)
        self.assertIn(LONG, text)


class Sweep(unittest.TestCase):
    """The page of a sweep, which has no timeline."""

    def test_it_opens_with_its_charts_at_every_width(self):
        page = sweep_page(run.root)
        with Browser() as browser:
            for width in WIDTHS:
                browser.size(width, 800)
                browser.open(page.as_uri())
                browser.wait("return document.querySelector('figure[data-chart] output')")
                self.assertLessEqual(browser.run("return document.documentElement.scrollWidth"), width)
            if screenshots():
                browser.screenshot(screenshots() / "sweep.png", whole=True)
            methods = browser.run(TABLE, "#methods table")
            self.assertEqual(len(methods), 3)
            self.assertEqual(browser.errors(), [])


class WithoutScripts(unittest.TestCase):
    """The page in a browser, or mail program, that runs no scripts."""

    def test_pictures_and_tables_are_there(self):
        with Browser(scripts=False) as browser:
            browser.open(run.page.as_uri())
            scripted, outputs, charts, pictures, tables, groups, controls = browser.run(
                """
                const seen = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility()).length;
                return [
                    document.documentElement.classList.contains("scripted"), document.querySelectorAll(".legend output").length,
                    document.querySelectorAll("figure.chart").length, seen("figure.chart .plot > svg"), seen("table"),
                    seen("div.group"), seen(".controls, .cursor, .chosen, .reading"),
                ];
                """
            )
            if screenshots():
                browser.screenshot(screenshots() / "page-without-scripts.png", whole=True)
        self.assertFalse(scripted)
        self.assertEqual((outputs, controls), (0, 0))
        self.assertGreater(charts, 5)
        self.assertEqual(pictures, charts)
        self.assertGreater(tables, 3)
        self.assertEqual(groups, 2)


class News:
    """A server of a page that changes when it is asked to, and says so."""

    def __init__(self, page):
        self.page = page
        self.readers = []
        news = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(200)
                if self.path != "/run/events?after=7":
                    body = news.page.encode()
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                events = queue.Queue()
                news.readers.append(events)
                while (event := events.get()) is not None:
                    self.wfile.write(f"event: {event}\ndata: 1\n\n".encode())
                    self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/run/"

    def tell(self, event):
        for events in self.readers:
            events.put(event)

    def close(self):
        self.tell(None)
        self.server.shutdown()
        self.server.server_close()


class Followed(unittest.TestCase):
    """A page that is served while its run plays."""

    def test_the_newest_numbers_come_and_the_reader_stays_where_they_were(self):
        page = run.page.read_text().replace('"live":null', '"live":7')
        news = News(page)
        with Browser() as browser:
            browser.open(news.address + "#growth&episode=e7&step=9")
            browser.wait("return document.querySelector('.legend output')")
            browser.run("document.querySelector('[data-chart=accuracy] details').open = true; document.querySelector('input.step').focus(); scrollTo(0, 600)")
            news.page = page.replace("<h1>", "<h1>News. ")
            while not news.readers:
                time.sleep(0.05)
            news.tell("page")
            browser.wait("return document.querySelector('h1').textContent.startsWith('News.')")
            step, chosen, is_open, at, focus, read, charts = browser.run(
                """
                return [
                    document.querySelector("input.step").value, document.querySelector("div.group:not([hidden]) .is-chosen").dataset.episode,
                    document.querySelector("[data-chart=accuracy] details").open, scrollY, document.activeElement.className,
                    document.querySelectorAll("figure[data-chart] .legend .at").length, document.querySelectorAll("figure[data-chart]").length,
                ];
                """
            )
            self.assertEqual((step, chosen, is_open, at, focus), ("9", "e7", True, 600, "step"))
            self.assertEqual(read, charts)
            self.assertEqual(browser.errors(), [])
            news.tell("gone")
            browser.wait("return document.querySelector('body > .lost')")
            news.tell("page")
            browser.wait("return !document.querySelector('body > .lost')")
            news.close()
            browser.wait("return document.querySelector('body > .lost')")

    def test_the_program_serves_a_run_that_plays(self):
        if "--http" not in engine("report", "--help"):
            self.skipTest("this program's report has no --http")
        playing = subprocess.Popen([PROGRAM, *QUICKSTART, "--rounds", "40", "--out", str(run.root / "played")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(playing.wait)
        self.addCleanup(playing.terminate)
        end = time.monotonic() + 60
        while not list((run.root / "played").glob("*/events.jsonl")) and time.monotonic() < end:
            time.sleep(0.1)
        serving = subprocess.Popen(
            [PROGRAM, "report", "latest", "--out", str(run.root / "played"), "-o", str(run.root / "followed.html"), "--follow", "--http", "127.0.0.1:0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(serving.stderr.close)
        self.addCleanup(serving.wait)
        self.addCleanup(serving.terminate)
        address = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+\S*", line) for line in serving.stderr))).group(0)
        rounds = "return document.querySelectorAll('[data-chart=accuracy] tbody tr').length"
        with Browser() as browser:
            browser.open(address)
            browser.wait(f"{rounds} >= 1", seconds=60)
            browser.run("window.isSame = true")
            before = browser.run(rounds)
            browser.wait(f"{rounds} > arguments[0]", before, seconds=60)
            self.assertTrue(browser.run("return window.isSame"), "the page was not loaded again as a whole")
            self.assertEqual(browser.errors(), [])


if __name__ == "__main__":
    unittest.main()
