// Scene 2: texts of a chain that stores three words, at a chosen temperature.

function wallsScene(section, data) {
  const levels = data.levels;
  const period = data.patterns[0].length;
  const label = (character) => parseInt(character, 36);
  const text = section.querySelector(".text");
  const numbers = section.querySelector(".numbers");
  const most = Math.max(...levels.map((level) => level.expected), ...levels.map((level) => mean(level.walls)));
  let [strips, chart, shown] = [null, null, 0];

  canvas(
    section.querySelector(".strips"),
    levels[0].labels.length * 9 + 4,
    "Twenty-four texts as strips, coloured by the word that they repeat",
    (svg, width) => {
      strips = {
        width,
        patterns: data.patterns.map((_, pattern) => add(svg, "path", { class: `fill p${pattern}` })),
        walls: add(svg, "path", { class: "wall" }),
      };
      paintStrips();
    },
  );
  canvas(section.querySelector(".chart"), 224, "Expected number of domain walls by temperature", (svg, width, height) => {
    const x = (place) => mix(34, width - 12, place / (levels.length - 1));
    const y = (walls) => mix(height - 34, 12, walls / most);
    for (const walls of [0, 20, 40]) {
      add(svg, "line", { class: "grid", x1: 34, x2: width - 12, y1: y(walls), y2: y(walls) });
      add(svg, "text", { class: "tick", x: 28, y: y(walls) + 4, "text-anchor": "end" }, walls);
    }
    for (const temperature of [0.1, 0.3, 0.5, 0.7]) {
      const place = levels.findIndex((level) => level.temperature === temperature);
      add(svg, "text", { class: "tick", x: x(place), y: height - 16, "text-anchor": "middle" }, temperature);
    }
    add(svg, "text", { class: "head", x: (34 + width - 12) / 2, y: height - 2, "text-anchor": "middle" }, "temperature");
    add(svg, "text", { class: "head", x: 42, y: 16 }, "walls per text");
    const line = levels.map((level, place) => `${x(place)} ${y(level.expected)}`).join("L");
    add(svg, "path", { class: "curve", d: `M${line}` });
    levels.forEach((level, place) => {
      const [middle, error] = [mean(level.walls), standardError(level.walls)];
      const [y1, y2] = [y(Math.max(0, middle - error)), y(middle + error)];
      add(svg, "line", { class: "error", x1: x(place), x2: x(place), y1, y2 });
      add(svg, "circle", { class: "counted", cx: x(place), cy: y(middle), r: 2.5 });
    });
    const here = add(svg, "circle", { class: "dot", r: 7 });
    const rule = add(svg, "line", { class: "playhead", y1: 8, y2: height - 34 });
    chart = { x, y, here, rule };
    paintChart();
  });

  const rounded = (walls) => (walls < 0.995 ? String(Number(walls.toPrecision(2))) : walls.toFixed(1));

  function paintStrips() {
    if (strips === null) return;
    const windows = levels[shown].labels[0].length;
    const wide = strips.width / windows;
    const paths = data.patterns.map(() => []);
    const walls = [];
    levels[shown].labels.forEach((row, line) => {
      const y = line * 9;
      let begin = 0;
      for (let place = 1; place <= windows; place++) {
        if (place < windows && row[place] === row[begin]) continue;
        const pattern = Math.floor(label(row[begin]) / period);
        paths[pattern].push(`M${(begin * wide).toFixed(1)} ${y}H${(place * wide).toFixed(1)}v7H${(begin * wide).toFixed(1)}z`);
        if (place < windows) walls.push(`M${(place * wide).toFixed(1)} ${y - 1}v9`);
        begin = place;
      }
    });
    strips.patterns.forEach((path, pattern) => path.setAttribute("d", paths[pattern].join("")));
    strips.walls.setAttribute("d", walls.join(""));
  }

  function paintChart() {
    if (chart === null) return;
    const x = chart.x(shown);
    set(chart.here, { cx: x, cy: chart.y(levels[shown].expected) });
    set(chart.rule, { x1: x, x2: x });
  }

  function paintText() {
    const level = levels[shown];
    const windows = level.labels[0].length;
    const predicted = (followed, site) =>
      data.patterns[Math.floor(followed / period)][(site + (followed % period)) % period];
    // A letter belongs to the first window that contains and predicts it, or else to the window that it begins.
    const followed = [...level.text].map((letter, site) => {
      const holding = [...Array(data.window).keys()]
        .map((back) => site - back)
        .filter((begin) => begin >= 0 && begin < windows)
        .map((begin) => label(level.labels[0][begin]))
        .reverse();
      return holding.find((one) => predicted(one, site) === letter) ?? holding.at(-1);
    });
    text.replaceChildren();
    let domain = null;
    [...level.text].forEach((letter, site) => {
      const pattern = Math.floor(followed[site] / period);
      if (site === 0 || followed[site] !== followed[site - 1]) {
        domain = add(text, "span", { class: `domain p${pattern}` });
      }
      if (letter === predicted(followed[site], site)) domain.append(letter);
      else add(domain, "i", {}, letter);
    });
  }

  new Timeline(section, {
    end: levels.length - 1,
    rate: () => 1.6,
    rest: 8,
    describe: (value) => `temperature ${levels[Math.round(value)].temperature}`,
    show: (value) => {
      shown = Math.round(value);
      const level = levels[shown];
      if (section.dataset.level === String(shown)) return;
      section.dataset.level = shown;
      section.querySelector(".degrees").textContent = level.temperature;
      numbers.replaceChildren();
      for (const [number, caption] of [
        [rounded(level.expected), "expected walls per text (exact)"],
        [rounded(mean(level.walls)), `mean number of walls in these ${level.walls.length} texts`],
        [percent(level.no_walls), "expected fraction of texts without walls (exact)"],
      ]) {
        const one = add(numbers, "div");
        add(one, "dd", {}, number);
        add(one, "dt", {}, caption);
      }
      paintText();
      paintStrips();
      paintChart();
    },
  });
}
