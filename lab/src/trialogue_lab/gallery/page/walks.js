// Scene 1: four samplers on one tree. The timeline counts the model calls of each sampler.

function walksScene(section, data) {
  const leaves = data.words.map((_, node) => node).filter((node) => !data.parents.includes(node));
  const broken = new Set(leaves.filter((leaf) => data.target[leaf] === 0));
  const depth = data.words.map((_, node) => ancestors(node).length - 1);
  const panels = data.walks.map((walk) => panel(walk));
  const speeds = [2, 14, 140];
  let chosen = null;
  const mark = choices(section, "speed", (place) => (chosen = place));
  const end = Math.max(...panels.map((one) => one.moves.at(-1).asked));
  const note = section.querySelector(".asked");

  new Timeline(section, {
    end,
    rate: (value) => {
      const place = chosen ?? (value < 24 ? 0 : value < 180 ? 1 : 2);
      mark(place);
      return speeds[place];
    },
    describe: (value) => `${Math.floor(value)} model calls`,
    show: (value) => {
      note.textContent = Math.floor(value).toLocaleString("en");
      for (const one of panels) one.show(value);
    },
  });

  function ancestors(node) {
    const line = [node];
    while (line[0] > 0) line.unshift(data.parents[line[0]]);
    return line;
  }

  // Returns the nodes on the path from one node to another.
  function way(from, to) {
    const [up, down] = [ancestors(from), ancestors(to)];
    let shared = 0;
    while (shared < up.length && up[shared] === down[shared]) shared++;
    return [...up.slice(shared - 1).reverse(), ...down.slice(shared)];
  }

  function timeline(walk) {
    const moves = [];
    let asked = 0;
    for (const run of walk.runs) {
      let at = run.steps[0][0].map(() => 0);
      run.steps.forEach(([nodes, sources], place) => {
        const begin = asked;
        asked += nodes.length;
        const ways = nodes.map((node, member) => way(at[sources ? sources[member] : member], node));
        moves.push({ begin, asked, ways, output: place + 1 === run.steps.length ? run.output : null });
        at = nodes;
      });
    }
    return moves;
  }

  function panel(walk) {
    const moves = timeline(walk);
    const box = add(section.querySelector(".stage"), "article", { class: "panel" });
    add(box, "h3", {}, walk.name);
    add(box, "p", { class: "says" }, walk.description);
    const counts = new Array(data.words.length).fill(0);
    let [next, total, last] = [0, 0, null];
    let parts = null;
    let value = 0;
    canvas(
      add(box, "div"),
      226,
      `Tree of sentences, with the actual and the correct frequency of each sentence for ${walk.name.toLowerCase()}`,
      (svg, width) => {
        parts = paint(svg, width);
        redraw();
      },
    );
    const facts = add(box, "p", { class: "facts" });
    const written = add(facts, "span");
    const misplaced = add(facts, "span");
    add(facts, "span", { class: "exact" }, `${percent(walk.distance)} misplaced in the long run (exact)`);

    function paint(svg, width) {
      const bars = Math.max(112, width * 0.36);
      const column = (width - bars - 72) / 3;
      const place = data.words.map(() => null);
      const row = (leaf) => 34 + leaves.indexOf(leaf) * 24;
      const height = (node) => {
        if (leaves.includes(node)) return row(node);
        const below = data.parents.flatMap((parent, child) => (parent === node ? [height(child)] : []));
        return below.reduce((sum, one) => sum + one, 0) / below.length;
      };
      data.words.forEach((_, node) => (place[node] = [8 + depth[node] * column, height(node)]));
      const edges = add(svg, "g");
      const names = add(svg, "g");
      data.words.forEach((word, node) => {
        const [x, y] = place[node];
        if (node > 0) {
          const [px, py] = place[data.parents[node]];
          const bend = px + column * 0.45;
          add(edges, "path", {
            class: "edge",
            d: `M${px} ${py}C${bend} ${py} ${bend} ${y} ${x} ${y}`,
            "stroke-width": 1 + 9 * Math.sqrt(data.reached[node]),
          });
        }
        if (!broken.has(node)) add(names, "circle", { class: "node", cx: x, cy: y, r: walk.values ? 2 + 4 * walk.values[node] : 4 });
        const label = broken.has(node) ? "word wrong" : leaves.includes(node) ? "word right" : "word";
        if (word) add(names, "text", { class: label, x: x + 9, y: y + 4 }, word);
        if (broken.has(node)) add(names, "path", { class: "cross", d: `M${x - 3} ${y - 3}l6 6m-6 0l6-6` });
      });
      const left = width - bars;
      const long = bars - 46;
      add(svg, "text", { class: "head", x: 0, y: 12 }, "thick branch: likely");
      add(svg, "text", { class: "head", x: width, y: 12, "text-anchor": "end" }, "frequency");
      const shares = leaves.map((leaf) => {
        const y = row(leaf);
        const bar = add(svg, "rect", { class: broken.has(leaf) ? "bar wrong" : "bar", x: left, y: y - 7, height: 14, rx: 2, width: 0 });
        if (data.target[leaf] > 0) {
          add(svg, "rect", { class: "due", x: left, y: y - 9, height: 18, rx: 3, width: long * data.target[leaf] });
        }
        const text = add(svg, "text", { class: "share", y: y + 4 });
        return { leaf, bar, text };
      });
      const dots = moves[0].ways.map(() => add(svg, "circle", { class: "dot", r: walk.runs[0].steps[0][0].length > 1 ? 4 : 7 }));
      return { place, column, left, long, shares, dots };
    }

    function point(nodes, share) {
      const along = share * (nodes.length - 1);
      const from = Math.min(nodes.length - 1, Math.floor(along));
      const to = Math.min(nodes.length - 1, from + 1);
      const [[ax, ay], [bx, by]] = [parts.place[nodes[from]], parts.place[nodes[to]]];
      const part = smooth(along - from);
      // The dot follows the curve of the branch, which bends in the middle.
      return [mix(ax, bx, part), mix(ay, by, smooth(part))];
    }

    function redraw() {
      if (parts === null) return;
      for (const { leaf, bar, text } of parts.shares) {
        const share = total > 0 ? counts[leaf] / total : 0;
        bar.setAttribute("width", share * parts.long);
        text.setAttribute("x", parts.left + Math.max(share, data.target[leaf]) * parts.long + 5);
        text.textContent = share > 0 ? percent(share) : "";
      }
      const move = moves[Math.min(next, moves.length - 1)];
      const share = Math.min(1, Math.max(0, (value - move.begin) / (move.asked - move.begin)));
      parts.dots.forEach((dot, member) => {
        const [x, y] = point(move.ways[member], Math.min(1, share * 1.25));
        // Several dots are arranged in two rows.
        const [right, below] = parts.dots.length > 1 ? [(member % 2) - 0.5, (member >> 1) - 0.5] : [0, 0];
        set(dot, { cx: x + 8 * right, cy: y + 8 * below });
        dot.classList.toggle("lost", broken.has(move.ways[member].at(-1)) && share > 0.8);
      });
    }

    function show(now) {
      if (now < value) {
        counts.fill(0);
        [next, total, last] = [0, 0, null];
      }
      value = now;
      while (next < moves.length && moves[next].asked <= value) {
        const { output } = moves[next];
        if (output !== null) {
          counts[output] += 1;
          total += 1;
          last = output;
        }
        next += 1;
      }
      const apart = leaves.reduce((sum, leaf) => sum + Math.abs(counts[leaf] / Math.max(1, total) - data.target[leaf]), 0) / 2;
      written.textContent = `${total} sentence${total === 1 ? "" : "s"}`;
      misplaced.textContent = total > 0 ? `${percent(apart)} misplaced so far` : "";
      box.dataset.outputs = total;
      box.dataset.last = last ?? "";
      redraw();
    }

    return { moves, show };
  }
}
