// Functions of the scenes with two groups of friends: a drawing of one evening, and a grid with a dot for each evening.

// Draws `size` friends per group, and a grid of the numbers of yes with `copies` dots.
function paintEvenings(svg, width, size, copies) {
  const cells = size + 1;
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
  return { cells, centre, side, friends, due, dots };
}

// The area of a disc is proportional to the expected number of evenings in its cell.
function discRadius(parts, expected) {
  return expected < 0.2 ? 0 : parts.side * 0.04 * Math.sqrt(expected) + 2;
}

// Returns the position of each dot, given the cells of the dots as base-36 digits.
function packDots(parts, cells) {
  const golden = Math.PI * (3 - Math.sqrt(5));
  const filled = new Array(parts.cells ** 2).fill(0);
  return [...cells].map((character) => {
    const cell = parseInt(character, 36);
    const rank = filled[cell]++;
    const [x, y] = parts.centre(cell);
    const far = parts.side * 0.04 * Math.sqrt(rank + 0.5);
    return [x + far * Math.cos(rank * golden), y + far * Math.sin(rank * golden)];
  });
}
