// Scene 3: two groups of friends, many copies of one evening, and two ways to change the answers.

function cliquesScene(section, data) {
  const size = data.clique;
  const cells = size + 1;
  let level = 2;
  const steps = data.levels[0].chains[0].copies.length - 1;
  const copies = data.levels[0].chains[0].copies[0].length;
  const golden = Math.PI * (3 - Math.sqrt(5));
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
        parts = paint(svg, width);
        target();
        show(now);
      },
    );

    function paint(svg, width) {
      const square = Math.min(width, 380);
      const left = (width - square) / 2 + 34;
      const side = (square - 48) / cells;
      const centre = (cell) => [
        left + (Math.floor(cell / cells) + 0.5) * side,
        84 + (cells - 1 - (cell % cells) + 0.5) * side + 6,
      ];
      const friends = [];
      for (const group of [0, 1]) {
        const [cx, cy] = [width / 2 + (group - 0.5) * 130, 42];
        const around = [...Array(size).keys()].map((friend) => {
          const angle = (friend + 0.5) * ((2 * Math.PI) / size);
          return [cx + 27 * Math.cos(angle), cy + 27 * Math.sin(angle)];
        });
        around.forEach(([x1, y1], one) => {
          for (const [x2, y2] of around.slice(one + 1)) add(svg, "line", { class: "tie", x1, y1, x2, y2 });
        });
        for (const [x, y] of around) {
          const friend = add(svg, "g", { class: "friend", transform: `translate(${x} ${y})` });
          add(friend, "circle", { r: 12.5 });
          add(friend, "text", { y: 4, "text-anchor": "middle" });
          friends.push(friend);
        }
        add(svg, "text", { class: "head", x: cx + (group - 0.5) * 84, y: cy + 4, "text-anchor": group ? "start" : "end" }, `group ${"AB"[group]}`);
      }
      for (let line = 0; line <= cells; line++) {
        const [edge, foot] = [left + line * side, 90 + line * side];
        add(svg, "line", { class: "grid", x1: edge, x2: edge, y1: 90, y2: 90 + cells * side });
        add(svg, "line", { class: "grid", x1: left, x2: left + cells * side, y1: foot, y2: foot });
      }
      const due = [...Array(cells * cells).keys()].map((cell) => {
        const [cx, cy] = centre(cell);
        return add(svg, "circle", { class: "halo", cx, cy });
      });
      for (let ups = 0; ups < cells; ups++) {
        const [x, bottom] = centre(ups * cells);
        add(svg, "text", { class: "tick", x, y: bottom + side / 2 + 14, "text-anchor": "middle" }, ups);
        add(svg, "text", { class: "tick", x: left - 8, y: centre(ups)[1] + 4, "text-anchor": "end" }, ups);
      }
      const [x, y] = centre(Math.floor(cells / 2) * cells);
      add(svg, "text", { class: "head", x, y: y + side / 2 + 30, "text-anchor": "middle" }, "number of yes in group A");
      add(
        svg,
        "text",
        { class: "head", transform: `translate(${left - 24} ${centre(Math.floor(cells / 2))[1]}) rotate(-90)`, "text-anchor": "middle" },
        "number of yes in group B",
      );
      const dots = [...Array(copies)].map(() => add(svg, "circle", { class: "copy", r: side * 0.031 }));
      return { centre, side, friends, due, dots };
    }

    // The area of a disc is proportional to the expected number of evenings in its cell.
    function target() {
      parts?.due.forEach((halo, cell) => {
        const expected = copies * data.levels[level].target[cell];
        set(halo, { r: expected < 0.2 ? 0 : parts.side * 0.04 * Math.sqrt(expected) + 2 });
      });
    }

    function positions(step) {
      const filled = new Array(cells * cells).fill(0);
      return [...data.levels[level].chains[place].copies[step]].map((character) => {
        const cell = parseInt(character, 36);
        const rank = filled[cell]++;
        const [x, y] = parts.centre(cell);
        const far = parts.side * 0.04 * Math.sqrt(rank + 0.5);
        return [x + far * Math.cos(rank * golden), y + far * Math.sin(rank * golden)];
      });
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
    add(svg, "text", { class: "head", x: 40, y: 11 }, "share of misplaced evenings by round (exact)");
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
