// The interactive part of a report: curves that can be read off and switched, numbers to download, episodes that are replayed
// step by step, and the newest numbers if the page is served. Every picture and table is there without it. Names in the data may
// come from anyone, so they reach the page only as text.
(function () {
    "use strict";

    const root = document.documentElement;
    const main = document.querySelector("main");
    const nav = document.querySelector("nav");
    let data = JSON.parse(document.getElementById("data").textContent);

    // Small helpers.

    /** A text that shows invisible characters, and those that change the direction of reading, as their codes. */
    const plain = (text) =>
        text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (hidden) => "\\u{" + hidden.codePointAt(0).toString(16) + "}");

    /** An element with attributes and content, which are elements and texts. */
    function make(name, attributes, ...inside) {
        const element = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        element.append(...inside.map((each) => (typeof each === "string" ? plain(each) : each)));
        return element;
    }

    function button(text, title, click) {
        const element = make("button", { type: "button", title }, text);
        element.addEventListener("click", click);
        return element;
    }

    /** A number as people read it, or a dash if there is none. */
    function number(value, digits = 4) {
        if (value === null || value === undefined) return "—";
        const size = Math.abs(value);
        if (size >= 1e4 || Number.isInteger(value)) return value.toLocaleString("en", { maximumFractionDigits: 0 });
        return String(Number(value.toPrecision(digits)));
    }

    /** The current value of a colour of the style sheet. */
    const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

    function save(name, type, text) {
        const address = URL.createObjectURL(new Blob([text], { type }));
        make("a", { href: address, download: name }).click();
        setTimeout(() => URL.revokeObjectURL(address), 10000);
    }

    // Numbers and pictures to download.

    /** The numbers in a chart's picture, or `null` for a picture that isn't a chart. */
    function chartOf(figure) {
        const reading = figure.querySelector(".reading");
        if (!reading) return null;
        const entries = [...figure.querySelectorAll(".legend li")];
        const series = [...figure.querySelectorAll("g.series")].map((drawn, index) => {
            const [values, high] = [JSON.parse(drawn.dataset.values), JSON.parse(drawn.dataset.high)];
            return { entry: entries[index], name: entries[index].textContent, drawn, values, high: high.length > 0 ? high : null };
        });
        return { reading, about: reading.dataset.label, x: JSON.parse(reading.dataset.x), series };
    }

    function csv(chart) {
        const columns = [[chart.about, chart.x]];
        for (const { name, values, high } of chart.series) {
            if (high) columns.push([name + ", low", values], [name + ", high", high]);
            else columns.push([name, values]);
        }
        const field = (value) => (/[",\r\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value);
        const rows = chart.x.map((_, row) => columns.map(([, values]) => values[row] ?? ""));
        return [columns.map(([name]) => field(name)), ...rows].map((row) => row.join(",") + "\n").join("");
    }

    const DRAWN_BY = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity"];
    const WRITTEN_BY = ["font-family", "font-size", "font-weight"];

    /** A picture that needs no style sheet: every element has its computed style. */
    function standalone(svg) {
        const copy = svg.cloneNode(true);
        const drawn = [...svg.querySelectorAll("*")];
        [...copy.querySelectorAll("*")].forEach((element, place) => {
            const style = getComputedStyle(drawn[place]);
            if (style.display === "none") return element.remove();
            const kept = element.localName === "text" ? [...DRAWN_BY, ...WRITTEN_BY] : DRAWN_BY;
            if (element.localName !== "title") for (const key of kept) element.setAttribute(key, style.getPropertyValue(key));
            const ofPage = [...element.attributes].map(({ name }) => name).filter((name) => /^(class|tabindex|role|aria-.*|data-.*)$/.test(name));
            for (const key of ofPage) element.removeAttribute(key);
        });
        const [, , width, height] = svg.getAttribute("viewBox").split(" ");
        copy.setAttribute("width", width);
        copy.setAttribute("height", height);
        copy.setAttribute("style", "background: " + colour("page"));
        return new XMLSerializer().serializeToString(copy);
    }

    function setUpFigure(figure, place) {
        const chart = chartOf(figure);
        const svg = figure.querySelector(".plot > svg");
        const name = figure.dataset.chart ?? figure.closest("section").id + "-" + place;
        const tools = make("div", { class: "tools" });
        if (chart) tools.append(button("CSV", "save the numbers", () => save(name + ".csv", "text/csv", csv(chart))));
        if (svg) tools.append(button("SVG", "save the picture", () => save(name + ".svg", "image/svg+xml", standalone(svg))));
        figure.prepend(tools);
        if (chart) setUpChart(figure, chart, svg);
    }

    // Charts: a pointer reads off numbers, the legend switches curves.

    let charts = [];

    function setUpChart(figure, chart, svg) {
        chart.at = make("output", {});
        figure.querySelector(".legend").prepend(make("li", { class: "at" }, chart.about + " ", chart.at));
        for (const series of chart.series) {
            series.shown = make("output", {});
            series.entry.append(" ", series.shown);
            for (const [key, value] of [["tabindex", 0], ["role", "button"], ["aria-pressed", true]]) series.entry.setAttribute(key, value);
            series.entry.addEventListener("click", () => toggle(series));
            series.entry.addEventListener("keydown", (event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                toggle(series);
            });
        }
        svg.addEventListener("pointermove", (event) => {
            const seen = svg.getBoundingClientRect();
            const { left, width, low, high } = chart.reading.dataset;
            const across = ((event.clientX - seen.left) / seen.width) * svg.viewBox.baseVal.width;
            readOff(chart.about, Number(low) + ((across - Number(left)) / Number(width)) * (Number(high) - Number(low)));
        });
        svg.addEventListener("pointerleave", () => readOff(chart.about, null));
        charts.push(chart);
        show(chart, null);
    }

    function toggle({ entry, drawn }) {
        const isOff = drawn.classList.toggle("is-off");
        entry.classList.toggle("is-off", isOff);
        entry.setAttribute("aria-pressed", !isOff);
    }

    /** Shows the numbers at a place in all charts over the same quantity, or the newest without a place. */
    function readOff(about, at) {
        for (const chart of charts) if (chart.about === about) show(chart, at);
    }

    function show(chart, at) {
        const { x, reading } = chart;
        const nearest = (best, value, row) => (Math.abs(value - at) < Math.abs(x[best] - at) ? row : best);
        const row = at === null ? x.length - 1 : x.reduce(nearest, 0);
        chart.at.textContent = number(x[row]);
        for (const { shown, values, high } of chart.series) {
            shown.textContent = number(values[row]) + (high ? " to " + number(high[row]) : "");
        }
        const { left, width, low, high } = reading.dataset;
        const across = Number(left) + ((x[row] - Number(low)) / (Number(high) - Number(low))) * Number(width);
        for (const end of ["x1", "x2"]) reading.setAttribute(end, across);
        reading.classList.toggle("is-shown", at !== null);
    }

    // The timeline.

    const chosen = { group: null, key: null, step: null };
    let player = null;
    const timeline = () => main.querySelector(".timeline");
    const inTimeline = (selector) => timeline().querySelector(selector);
    const lastStep = () => Number(inTimeline("input.step").max);
    const group = () => [...timeline().querySelectorAll("div.group")].find((element) => element.dataset.group === chosen.group);
    const episodesOf = (element) => [...element.querySelectorAll(".episode")].map((episode) => episode.dataset.episode);

    /** Makes a choice and shows it. If it no longer exists, its neighbour is chosen. */
    function choose(change, isPlayed) {
        if (!timeline()) return;
        const place = group() ? episodesOf(group()).indexOf(chosen.key) : 0;
        Object.assign(chosen, change);
        const groups = [...timeline().querySelectorAll("div.group")];
        if (!group()) chosen.group = groups[0]?.dataset.group;
        const holds = (element) => episodesOf(element).includes(chosen.key);
        if (change.key && !holds(group())) chosen.group = groups.find(holds)?.dataset.group ?? chosen.group;
        const keys = episodesOf(group());
        if (!keys.includes(chosen.key)) chosen.key = keys[Math.min(keys.length - 1, Math.max(0, place))];
        chosen.step = Math.min(lastStep(), Math.max(1, Math.round(chosen.step) || lastStep()));
        showChosen();
        if (!isPlayed) writeAddress();
    }

    function showChosen() {
        inTimeline("select.group").value = chosen.group;
        const slider = inTimeline("input.step");
        slider.value = chosen.step;
        slider.setAttribute("aria-valuetext", "step " + chosen.step + " of " + lastStep());
        inTimeline("output.step").textContent = chosen.step + " of " + lastStep();
        inTimeline("button.play").textContent = player ? "❚❚ Pause" : "▶ Play";
        for (const element of timeline().querySelectorAll("div.group")) element.hidden = element.dataset.group !== chosen.group;
        for (const lanes of timeline().querySelectorAll(".lanes")) {
            const { left, width, steps } = lanes.dataset;
            const at = Number(left) + ((chosen.step - 0.5) / Number(steps)) * Number(width);
            for (const end of ["x1", "x2"]) lanes.querySelector(".cursor").setAttribute(end, at);
        }
        for (const element of timeline().querySelectorAll(".episode")) {
            const isChosen = element.dataset.episode === chosen.key;
            element.classList.toggle("is-chosen", isChosen);
            element.setAttribute("aria-pressed", isChosen);
        }
        const replay = inTimeline(".replay");
        replay.setAttribute("aria-live", player ? "off" : "polite");
        replay.replaceChildren(...replayed(data.episodes.find((episode) => episode.key === chosen.key)));
    }

    /** An episode in its step, in words and bars. */
    function replayed(episode) {
        if (!episode) return [make("p", { class: "note" }, "No step of this episode is kept.")];
        const row = episode.steps.findLastIndex((step) => step <= chosen.step);
        if (row < 0) return [make("p", { class: "note" }, episode.name + ": nothing yet in step " + chosen.step + ".")];
        const head = make("h3", {}, episode.name + ", step " + episode.steps[row]);
        if (episode.steps[row] < chosen.step) head.append(make("span", { class: "note" }, " (the last so far)"));
        return [head, measured(episode, row), grown(episode, row), decided(episode.decisions[row])];
    }

    function measured(episode, row) {
        const list = make("dl", {});
        const add = (name, values, unit = "", isBetterAbove = null) => {
            const value = values[row];
            const entry = make("dd", { "data-of": name }, number(value) + (value === null ? "" : unit));
            const change = row > 0 && value !== null && values[row - 1] !== null ? Number((value - values[row - 1]).toPrecision(3)) : 0;
            if (isBetterAbove !== null && change !== 0) {
                const kind = change > 0 === isBetterAbove ? "up" : "down";
                entry.append(" ", make("span", { class: kind }, (change > 0 ? "+" : "−") + number(Math.abs(change))));
            }
            list.append(make("dt", {}, name), entry);
        };
        add("accuracy", episode.accuracy, " %", true);
        add("training accuracy", episode.train_accuracy, " %", true);
        add("loss", episode.loss, "", false);
        add("parameters", episode.params);
        add("reward", episode.reward);
        add("value, by the critic", episode.value);
        return make("div", {}, make("h4", {}, "Reached"), list);
    }

    /** A share as a bar. */
    function bar(name, share, kind) {
        const filled = make("i", { class: kind });
        filled.style.width = 100 * Math.min(1, Math.max(0, share)) + "%";
        return make(
            "div",
            { class: "measure" },
            make("span", { class: "of", title: name }, name),
            make("span", { class: "track" }, filled),
            make("span", { class: "share" }, (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + " %"),
        );
    }

    function grown(episode, row) {
        const slots = episode.slots.map((slot) => {
            const stage = slot.stage[row];
            if (stage === null) return make("div", { class: "slot" }, slot.slot + ": ", make("span", { class: "what" }, "empty"));
            const planted = slot.seeds.findLast(([first]) => first <= episode.steps[row]);
            const what = make("div", {}, slot.slot + ": " + (planted?.[1] ?? "a seed") + " ", make("span", { class: "what" }, stage.replaceAll("_", " ")));
            return make("div", { class: "slot" }, what, bar("amplitude", slot.alpha[row] ?? 0, "stage-" + stage));
        });
        return make("div", {}, make("h4", {}, "Slots"), ...slots);
    }

    function decided(decision) {
        const box = make("div", {}, make("h4", {}, "Decided"));
        if (!decision) {
            box.append(make("p", { class: "decision" }, "nothing was recorded"));
            return box;
        }
        const did = make("p", { class: "decision" }, decision.did);
        if (decision.refused) did.append(make("b", { class: "refused" }, ", refused: " + String(decision.refused).replaceAll("_", " ")));
        if (decision.reason) did.append(": " + decision.reason);
        box.append(did, ...decision.thought.map(([op, share]) => bar(op, share, "given")));
        return box;
    }

    function pause() {
        clearInterval(player);
        player = null;
    }

    function play() {
        if (player) {
            pause();
            return choose({});
        }
        if (chosen.step >= lastStep()) chosen.step = 1;
        // Ten steps a second. With reduced motion, ten at once, once a second.
        const atOnce = matchMedia("(prefers-reduced-motion: reduce)").matches ? 10 : 1;
        player = setInterval(() => {
            if (!timeline() || chosen.step + atOnce >= lastStep()) pause();
            choose({ step: chosen.step + atOnce }, player !== null);
        }, 100 * atOnce);
        showChosen();
    }

    function setUpTimeline() {
        if (!timeline()) return;
        inTimeline("select.group").addEventListener("change", (event) => choose({ group: event.target.value }));
        inTimeline("button.play").addEventListener("click", play);
        inTimeline("input.step").addEventListener("input", (event) => choose({ step: Number(event.target.value) }));
        const saveShown = () => save("growth-" + chosen.group + ".svg", "image/svg+xml", standalone(group().querySelector(".lanes svg")));
        inTimeline(".controls").append(button("SVG", "save the picture", saveShown));
        for (const lanes of timeline().querySelectorAll(".lanes")) {
            const scrub = (event) => {
                const episode = event.target.closest?.(".episode");
                const { left, width, steps } = lanes.dataset;
                const seen = lanes.querySelector("svg").getBoundingClientRect();
                const across = ((event.clientX - seen.left) / seen.width) * lanes.querySelector("svg").viewBox.baseVal.width;
                const step = Math.ceil(((across - Number(left)) / Number(width)) * Number(steps));
                choose({ ...(episode ? { key: episode.dataset.episode } : {}), ...(across >= Number(left) ? { step } : {}) });
            };
            lanes.addEventListener("click", scrub);
            lanes.addEventListener("pointermove", (event) => event.buttons === 1 && event.pointerType === "mouse" && scrub(event));
        }
        for (const episode of timeline().querySelectorAll(".episode")) {
            episode.setAttribute("role", "button");
            episode.setAttribute("aria-label", episode.querySelector("title")?.textContent ?? episode.dataset.episode);
        }
        timeline().addEventListener("keydown", steer);
    }

    function steer(event) {
        const episode = event.target.closest(".episode");
        if (!episode || event.ctrlKey || event.metaKey || event.altKey) return;
        const keys = episodesOf(group());
        const offset = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (offset) {
            const key = keys[keys.indexOf(episode.dataset.episode) + offset];
            if (key) {
                choose({ key });
                group().querySelectorAll(".episode")[keys.indexOf(key)].focus();
            }
        } else if (step) {
            choose({ step: chosen.step + step });
        } else if (event.key === "Enter" || event.key === " ") {
            choose({ key: episode.dataset.episode });
        } else {
            return;
        }
        event.preventDefault();
    }

    // The address contains the choice, so it can be shared.

    let written = null;

    function writeAddress() {
        clearTimeout(written);
        // Browsers limit how often this may be called.
        written = setTimeout(() => {
            const named = new URLSearchParams({ episode: chosen.key ?? "", step: chosen.step, group: chosen.group });
            try {
                history.replaceState(null, "", "#growth&" + named);
            } catch {
                // The page works without it.
            }
        }, 400);
    }

    function readAddress() {
        const [section, ...rest] = location.hash.slice(1).split("&");
        if (rest.length === 0) return {};
        document.getElementById(section)?.scrollIntoView();
        const named = new URLSearchParams(rest.join("&"));
        const change = {};
        if (named.get("group")) change.group = named.get("group");
        if (named.get("episode")) change.key = named.get("episode");
        if (named.get("step")) change.step = Number(named.get("step"));
        return change;
    }

    // The page as a whole.

    const seen = new IntersectionObserver(
        (entries) => {
            for (const { target, isIntersecting } of entries) target.toggleAttribute("data-seen", isIntersecting);
            const current = main.querySelector("section[data-seen]")?.id;
            for (const link of nav.querySelectorAll("a")) {
                if (link.getAttribute("href") === "#" + current) link.setAttribute("aria-current", "true");
                else link.removeAttribute("aria-current");
            }
        },
        { rootMargin: "-10% 0px -60% 0px" },
    );

    function setUp() {
        charts = [];
        [...main.querySelectorAll("figure.chart")].forEach(setUpFigure);
        setUpTimeline();
        for (const section of main.querySelectorAll("section")) seen.observe(section);
        nav.append(button("? Keys", "list the keys", help));
    }

    function help() {
        const keys = [
            ["↑ ↓", "on the timeline: the previous or next episode"],
            ["← →", "on the timeline or the slider: a step back or forward"],
            ["Enter", "chooses an episode; on a legend: shows or hides a curve"],
            ["?", "this list"],
        ];
        const entries = keys.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]);
        const dialog = make("dialog", { "aria-label": "keys" }, make("h2", {}, "Keys"), make("dl", {}, ...entries));
        dialog.append(button("Close", "", () => dialog.close()));
        dialog.addEventListener("close", () => dialog.remove());
        document.body.append(dialog);
        dialog.showModal();
    }

    document.addEventListener("keydown", (event) => {
        const isTyped = event.target.matches?.("input:not([type=range]), textarea");
        if (event.key === "?" && !isTyped && !document.querySelector("dialog")) help();
    });
    addEventListener("hashchange", () => location.hash.includes("&") && choose(readAddress(), true));

    // A served page gets the newest numbers and keeps the reader's place.

    const reached = "a, button, input, select, summary, [tabindex]";
    const all = (selector) => [...main.querySelectorAll(selector)];
    /** The identity of an element that survives a rewrite of the page: its section, and its place there. */
    const placeOf = (element, selector) => {
        const section = element.closest("section");
        return section ? section.id + " " + [...section.querySelectorAll(selector)].indexOf(element) : null;
    };

    function renew(text) {
        const next = new DOMParser().parseFromString(text, "text/html");
        const numbers = next.getElementById("data");
        if (!numbers) return;
        const open = new Set(all("details[open]").map((element) => placeOf(element, "details")));
        const focused = main.contains(document.activeElement) ? placeOf(document.activeElement, reached) : null;
        const scrolled = all(".lanes, .scroll, .log").map((element) => [placeOf(element, ".lanes, .scroll, .log"), element.scrollTop]);
        const at = scrollY;
        seen.disconnect();
        data = JSON.parse(numbers.textContent);
        document.title = next.title;
        nav.replaceChildren(...next.querySelector("nav").childNodes);
        main.replaceChildren(...next.querySelector("main").childNodes);
        for (const element of all("details")) element.open ||= open.has(placeOf(element, "details"));
        setUp();
        choose({}, true);
        const places = new Map(scrolled);
        for (const element of all(".lanes, .scroll, .log")) element.scrollTop = places.get(placeOf(element, ".lanes, .scroll, .log")) ?? 0;
        if (focused) all(reached).find((element) => placeOf(element, reached) === focused)?.focus({ preventScroll: true });
        scrollTo({ top: at, behavior: "instant" });
    }

    let isHeld = false;
    let isStale = false;

    /** Fetches the page again, unless the reader is pressing something. */
    async function refresh() {
        isStale = isHeld;
        if (isHeld) return;
        try {
            const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
            if (!answer.ok) throw new Error(answer.statusText);
            renew(await answer.text());
            lost(false);
        } catch {
            lost(true);
        }
    }

    function lost(isLost) {
        document.querySelector("body > .lost")?.remove();
        if (isLost) document.body.prepend(make("p", { class: "problem lost", role: "status" }, "The connection is lost. These are the numbers so far."));
    }

    function listen() {
        const source = new EventSource(`events?after=${data.live}`);
        source.addEventListener("open", () => document.querySelector("body > .lost") && refresh());
        source.addEventListener("page", refresh);
        source.addEventListener("gone", () => lost(true));
        source.addEventListener("error", () => {
            lost(true);
            if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
        });
    }

    root.classList.add("scripted");
    setUp();
    choose(readAddress(), true);
    if (data.live !== null) {
        addEventListener("pointerdown", () => (isHeld = true));
        for (const end of ["pointerup", "pointercancel"]) {
            addEventListener(end, () => {
                isHeld = false;
                if (isStale) refresh();
            });
        }
        listen();
    }
})();
