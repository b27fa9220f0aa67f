// Scene 3: two groups of friends, many copies of one evening, and two ways to change the answers.

function cliquesScene(section, data) {
  const size = data.clique;
  let level = 2;
  const steps = data.levels[0].chains[0].copies.length - 1;
  const copies = data.levels[0].chains[0].copies[0].length;
  let chart = null;
  let now = 0;
  const panels = data.chains.map((player, place) => panel(player, place));

  canvas(section.querySelector(".chart"), 150, "Exact distance from the correct distribution by round, for both methods", (svg, width, height) => {
    chart = { svg, width, height };
    paintChart();
  });

  const time = new Timeline(section, {
    end: steps,
    rate: (value) => (value < 6 ? 1.4 : value < 20 ? 3 : 8),
    describe: (value) => `round ${Math.floor(value)} of ${steps}`,
    show: (value) => {
      now = value;
      section.querySelector(".round").textContent = Math.floor(value);
      for (const one of panels) one.show(value);
      moveChart();
    },
  });
  choices(section, "coupling", (chosen) => {
    level = chosen;
    section.dataset.level = chosen;
    for (const one of panels) one.target();
    paintChart();
    time.restart();
  });

  function panel(player, place) {
    const box = add(section.querySelector(".stage"), "article", { class: `panel c${place}` });
    add(box, "h3", {}, player.name);
    add(box, "p", { class: "says" }, player.description);
    const drawing = add(box, "div");
    const distance = add(add(box, "p", { class: "facts" }), "span");
    let parts = null;
    canvas(
      drawing,
      (width) => 96 + Math.min(width, 380),
      `Above: the answers of one evening. Below: the answers of ${copies} evenings, and the correct distribution`,
      (svg, width) => {
        parts = paintEvenings(svg, width, size, copies);
        target();
        show(now);
      },
    );

    // The area of a disc is proportional to the expected number of evenings in its cell.
    function target() {
      parts?.due.forEach((halo, cell) => {
        set(halo, { r: discRadius(parts, copies * data.levels[level].target[cell]) });
      });
    }

    function positions(step) {
      return packDots(parts, data.levels[level].chains[place].copies[step]);
    }

    function show(value) {
      if (parts === null) return;
      const step = Math.floor(value);
      // The dots rest for most of a round and then move quickly.
      const share = smooth(Math.max(0, Math.min(1, (value - step - 0.6) / 0.4)));
      if (parts.step !== step || parts.level !== level) {
        Object.assign(parts, { step, level, from: positions(step), to: positions(Math.min(steps, step + 1)) });
        const spins = data.levels[level].chains[place].spins[step];
        parts.friends.forEach((friend, spin) => {
          friend.classList.toggle("yes", spins[spin] === "1");
          friend.lastChild.textContent = spins[spin] === "1" ? "yes" : "no";
        });
        box.dataset.copies = data.levels[level].chains[place].copies[step];
        const apart = data.levels[level].chains[place].distance[step];
        distance.textContent = `${percent(apart)} misplaced (exact)`;
      }
      parts.dots.forEach((dot, copy) => {
        set(dot, { cx: mix(parts.from[copy][0], parts.to[copy][0], share), cy: mix(parts.from[copy][1], parts.to[copy][1], share) });
      });
    }

    return { show, target };
  }

  function paintChart() {
    if (chart === null) return;
    const { svg, width, height } = chart;
    svg.replaceChildren();
    const x = (step) => mix(40, width - 12, step / steps);
    const y = (share) => mix(height - 34, 20, share);
    for (const share of [0, 0.5, 1]) {
      add(svg, "line", { class: "grid", x1: 40, x2: width - 12, y1: y(share), y2: y(share) });
      add(svg, "text", { class: "tick", x: 34, y: y(share) + 4, "text-anchor": "end" }, percent(share));
    }
    for (const step of [0, 25, 50, 75, 100]) {
      add(svg, "text", { class: "tick", x: x(step), y: height - 18, "text-anchor": "middle" }, step);
    }
    add(svg, "text", { class: "head", x: 40, y: 11 }, "misplaced evenings by round (exact)");
    chart.marks = data.levels[level].chains.map(({ distance }, place) => {
      add(svg, "path", { class: `curve c${place}`, d: `M${distance.map((one, step) => `${x(step)} ${y(one)}`).join("L")}` });
      const at = 62;
      const above = place === 0 ? -7 : distance[at] > 0.85 ? 16 : -7;
      add(svg, "text", { class: `name c${place}`, x: x(at), y: y(distance[at]) + above }, data.chains[place].name);
      return add(svg, "circle", { class: `mark c${place}`, r: 5 });
    });
    Object.assign(chart, { x, y });
    moveChart();
  }

  function moveChart() {
    chart?.marks?.forEach((mark, place) => {
      const { distance } = data.levels[level].chains[place];
      const step = Math.floor(now);
      const share = mix(distance[step], distance[Math.min(steps, step + 1)], now - step);
      set(mark, { cx: chart.x(now), cy: chart.y(share) });
    });
  }
}
