// Scene 4: one evening after another, answered in a few passes, in three orders.

function revealsScene(section, data) {
  let level = 1;
  let now = 0;
  const evenings = data.levels[0].orders[0].spins.length;
  const panels = data.orders.map((order, place) => panel(order, place));

  const time = new Timeline(section, {
    end: evenings,
    // The first evenings are slow, so that their passes can be followed.
    rate: (value) => (value < 3 ? 0.22 : Math.min(20, value * 0.35)),
    describe: (value) => `${Math.floor(value)} of ${evenings} evenings`,
    show: (value) => {
      now = value;
      section.querySelector(".evenings").textContent = Math.floor(value);
      for (const one of panels) one.show();
    },
  });
  choices(section, "positions", (chosen) => {
    level = chosen;
    for (const one of panels) one.load();
    time.restart();
  });

  function panel(order, place) {
    const box = add(section.querySelector(".stage"), "article", { class: `panel r${place}` });
    add(box, "h3", {}, order.name);
    add(box, "p", { class: "says" }, order.description);
    const drawing = add(box, "div");
    const facts = add(box, "p", { class: "facts" });
    const [distance, divergence] = [add(facts, "span"), add(facts, "span")];
    let [parts, dots] = [null, []];
    canvas(
      drawing,
      (width) => 96 + Math.min(width, 380),
      `Above: the answers of one evening. Below: ${evenings} evenings, their exact distribution in the long run, and the correct one`,
      (svg, width) => {
        parts = paintEvenings(svg, width, data.clique, evenings);
        parts.rings = parts.due.map((halo, cell) => {
          const [cx, cy] = parts.centre(cell);
          set(halo, { r: discRadius(parts, evenings * data.target[cell]) });
          return add(svg, "circle", { class: "ring", cx, cy });
        });
        load();
        show();
      },
    );

    function load() {
      const chosen = data.levels[level].orders[place];
      distance.textContent = `${percent(chosen.distance)} misplaced in the long run (exact)`;
      divergence.textContent = `divergence ${chosen.divergence.toFixed(3)} nats (exact)`;
      if (parts === null) return;
      parts.rings.forEach((ring, cell) => set(ring, { r: discRadius(parts, evenings * chosen.output[cell]) }));
      const ups = (spins) => [...spins].filter((spin) => spin === "1").length;
      const cells = chosen.spins.map((spins) => {
        const cell = ups(spins.slice(0, data.clique)) * parts.cells + ups(spins.slice(data.clique));
        return cell.toString(36);
      });
      dots = packDots(parts, cells);
      dots.forEach(([cx, cy], evening) => set(parts.dots[evening], { cx, cy }));
    }

    function show() {
      if (parts === null) return;
      const evening = Math.min(evenings - 1, Math.floor(now));
      const done = Math.floor(now);
      const { spins, passes } = data.levels[level].orders[place];
      const count = (2 * data.clique) / data.levels[level].positions;
      // The last part of an evening shows all answers.
      const pass = now >= evenings ? count : Math.floor((now - evening) * (count + 1));
      parts.friends.forEach((friend, spin) => {
        const known = Number(passes[evening][spin]) <= pass;
        const yes = spins[evening][spin] === "1";
        friend.classList.toggle("yes", known && yes);
        friend.classList.toggle("open", !known);
        friend.lastChild.textContent = known ? (yes ? "yes" : "no") : "?";
      });
      parts.dots.forEach((dot, copy) => dot.classList.toggle("waiting", copy >= done));
      box.dataset.evenings = done;
    }

    return { load, show };
  }
}
