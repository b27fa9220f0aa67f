// Scene 5: a network of three layers learns dependencies among four tokens. The steps have a logarithmic scale.

function layersScene(section, data) {
  const names = ["bottom layer", "middle layer", "top layer"];
  const bounds = ["lowest error with pairs", "lowest error with triples", "lowest possible error"];
  let training = data.trainings[data.first];
  const chooser = section.querySelector("select");
  data.trainings.forEach((one, place) => {
    const option = add(chooser, "option", { value: place }, `no. ${place + 1}`);
    option.selected = place === data.first;
  });
  const end = Math.log10(Math.max(...training.curves[2].steps) / 10);
  let drawing = null;
  let now = 0;

  const stepAt = (value) => 10 * 10 ** value;
  const lamps = section.querySelector(".lamps");

  canvas(
    section.querySelector(".drawing"),
    (width) => (width < 520 ? 520 : 570),
    "Above: the error of the networks during training. Below: how far each of three layers has moved",
    (svg, width, height) => {
      drawing = { svg, width, height };
      paint();
    },
  );

  // Interpolates a curve at a step.
  function between(steps, values, step) {
    const after = steps.findIndex((one) => one >= step);
    if (after < 0) return values.at(-1);
    if (after === 0) return values[0];
    return mix(values[after - 1], values[after], (step - steps[after - 1]) / (steps[after] - steps[after - 1]));
  }

  function paint() {
    const { svg, width, height } = drawing;
    svg.replaceChildren();
    const [left, right] = [12, width - 12];
    const [lane, gap] = [38, 24];
    const foot = height - 40;
    const floor = foot - 3 * (lane + gap) - 30;
    const x = (step) => mix(left, right, Math.max(0, Math.log10(Math.max(1, step) / 10)) / end);
    const [top, bottom] = [training.curves[2].losses[0], training.bounds[2]];
    const y = (loss) => mix(floor, 26, (loss - bottom) / (top - bottom));
    add(svg, "text", { class: "head", x: left, y: 12 }, "error (nats per token)");
    for (const exponent of [1, 2, 3]) {
      const step = 10 ** exponent;
      add(svg, "line", { class: "grid", x1: x(step), x2: x(step), y1: 20, y2: foot });
      add(svg, "text", { class: "tick", x: x(step), y: foot + 14, "text-anchor": exponent === 1 ? "start" : "middle" }, step.toLocaleString("en"));
    }
    add(svg, "text", { class: "head", x: right, y: foot + 32, "text-anchor": "end" }, "training steps");
    training.bounds.forEach((bound, place) => {
      add(svg, "line", { class: "bound", x1: left, x2: right, y1: y(bound), y2: y(bound) });
      add(svg, "text", { class: "word", x: left, y: y(bound) - 5 }, `${bounds[place]}: ${bound.toFixed(2)}`);
    });
    const clip = add(add(svg, "defs"), "clipPath", { id: "past" });
    const past = add(clip, "rect", { x: 0, y: 0, height });
    const passed = add(svg, "g", { "clip-path": "url(#past)" });
    training.curves.forEach(({ steps, losses }, place) => {
      const line = steps.flatMap((step, at) => (step >= 10 ? [`${x(step)} ${y(losses[at])}`] : [])).join("L");
      add(passed, "path", { class: `loss l${place}`, d: `M${line}` });
    });
    const labels = [2, 1, 0].map((layer, line) => {
      const base = foot - 6 - (2 - line) * (lane + gap);
      const moved = training.moved[layer];
      const most = Math.max(...moved);
      const steps = training.curves[2].steps;
      const points = steps.flatMap((step, at) => (step >= 10 ? [`${x(step)} ${base - (lane * moved[at]) / most}`] : []));
      add(svg, "line", { class: "base", x1: left, x2: right, y1: base, y2: base });
      add(passed, "path", { class: `moved m${layer}`, d: `M${left} ${base}L${points.join("L")}L${right} ${base}z` });
      const onset = x(training.onsets[layer]);
      add(passed, "line", { class: `onset m${layer}`, x1: onset, x2: onset, y1: base - lane, y2: base });
      const text = add(svg, "text", { class: "word", x: left, y: base - lane - 6 });
      return { layer, moved, most, steps, text };
    });
    add(svg, "text", { class: "head", x: left, y: floor + 26 }, "how far each layer has moved");
    const rule = add(svg, "line", { class: "playhead", y1: 20, y2: foot });
    const marks = training.curves.map((_, place) => add(svg, "circle", { class: `mark l${place}`, r: place === 2 ? 7 : 4.5 }));
    const called = training.curves.map((_, place) => {
      return add(svg, "text", { class: place === 2 ? "word right" : "word" }, `${place + 1} layer${place ? "s" : ""}`);
    });
    Object.assign(drawing, { x, y, past, labels, rule, marks, called });
    move();
  }

  function move() {
    if (drawing?.marks === undefined) return;
    const step = stepAt(now);
    const x = drawing.x(step);
    drawing.past.setAttribute("width", x + 0.5);
    set(drawing.rule, { x1: x, x2: x });
    const ends = training.curves.map(({ steps, losses }, place) => {
      const until = Math.min(step, steps.at(-1));
      const [cx, cy] = [drawing.x(until), drawing.y(between(steps, losses, until))];
      set(drawing.marks[place], { cx, cy });
      return { place, cx, cy };
    });
    // Labels are placed next to their dots. The other labels avoid the label of the big dot.
    const taken = [];
    for (const { place, cx, cy } of ends.reverse()) {
      let y = cy;
      const way = ends.every((one) => one.cy < 60) ? 1 : -1;
      while (taken.some((one) => Math.abs(one - y) < 15)) y += way;
      taken.push(y);
      const beyond = cx > drawing.width - 80;
      set(drawing.called[place], { x: cx + (beyond ? -12 : 12), y: y - (beyond ? 10 : -4), "text-anchor": beyond ? "end" : "start" });
    }
    for (const { layer, text } of drawing.labels) {
      const awake = step >= training.onsets[layer];
      text.textContent = `${names[layer]}${awake ? `: wakes up at step ${training.onsets[layer].toLocaleString("en")}` : ""}`;
      text.classList.toggle("awake", awake);
    }
    [2, 1, 0].forEach((layer, line) => {
      const lamp = lamps.children[line];
      const moved = training.moved[layer];
      const share = between(training.curves[2].steps, moved, step) / Math.max(...moved);
      lamp.style.setProperty("--glow", share.toFixed(3));
      lamp.classList.toggle("awake", step >= training.onsets[layer]);
    });
    section.dataset.awake = training.onsets.filter((onset) => step >= onset).length;
  }

  const time = new Timeline(section, {
    end,
    step: 0.01,
    rate: () => 0.22,
    describe: (value) => `training step ${Math.round(stepAt(value))}`,
    show: (value) => {
      now = value;
      section.querySelector(".step").textContent = Math.round(stepAt(value)).toLocaleString("en");
      move();
    },
  });
  chooser.addEventListener("change", () => {
    training = data.trainings[Number(chooser.value)];
    section.dataset.training = chooser.value;
    paint();
    time.restart();
  });
}
