// Functions that all scenes use: drawing, formatting of numbers, and a timeline.

const stillness = matchMedia("(prefers-reduced-motion: reduce)");

function add(parent, name, attributes = {}, text = null) {
  const inside = parent.namespaceURI === "http://www.w3.org/2000/svg" || name === "svg";
  const made = inside ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  set(made, attributes);
  if (text !== null) made.textContent = text;
  return parent.appendChild(made);
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;

function standardError(numbers) {
  const middle = mean(numbers);
  const squares = numbers.reduce((sum, one) => sum + (one - middle) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1) / numbers.length);
}

function percent(share) {
  if (share === 0) return "0\u00a0%";
  if (share < 0.0005) return "<\u00a00.1\u00a0%";
  return `${(100 * share).toFixed(share < 0.0995 || (share > 0.995 && share < 0.9995) ? 1 : 0)}\u00a0%`;
}

const mix = (from, to, share) => from + (to - from) * share;
const smooth = (share) => share * share * (3 - 2 * share);

// Adds an SVG with the width of its parent. `paint(svg, width, height)` draws it again when the width changes.
function canvas(parent, height, label, paint) {
  const svg = add(parent, "svg", { role: "img", "aria-label": label });
  let drawn = 0;
  const fit = () => {
    const width = Math.floor(parent.clientWidth);
    if (width < 40 || width === drawn) return;
    drawn = width;
    svg.replaceChildren();
    const tall = typeof height === "function" ? height(width) : height;
    set(svg, { width, height: tall, viewBox: `0 0 ${width} ${tall}` });
    paint(svg, width, tall);
  };
  new ResizeObserver(fit).observe(parent);
  fit();
  return svg;
}

// A value from 0 to `end` that the button and the slider of `section` control. `show(value)` draws the value, `rate(value)`
// is its speed per second, and `describe(value)` is its text for screen readers. The value advances only while the section
// is in the middle of the view, and starts automatically only if the user does not prefer reduced motion.
class Timeline {
  constructor(section, { end, rate, show, describe, step = 1, start = 0, rest = end }) {
    Object.assign(this, { section, end, rate, show, describe });
    this.button = section.querySelector(".play");
    this.slider = section.querySelector(".time");
    set(this.slider, { min: 0, max: end, step });
    this.visible = false;
    this.wanted = !stillness.matches;
    this.value = this.wanted ? start : rest;
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => {
      this.wanted = false;
      this.to(Number(this.slider.value));
      this.update();
    });
    new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting;
      this.update();
    }, { rootMargin: "-25% 0px" }).observe(section);
    this.to(this.value);
    this.update();
  }

  get playing() {
    return this.wanted && this.visible;
  }

  toggle() {
    this.wanted = !this.wanted;
    if (this.wanted && this.value >= this.end) this.to(0);
    this.update();
  }

  restart() {
    this.wanted = !stillness.matches;
    this.to(this.wanted ? 0 : this.value);
    this.update();
  }

  to(value) {
    this.value = Math.min(this.end, Math.max(0, value));
    this.slider.value = this.value;
    this.slider.setAttribute("aria-valuetext", this.describe(this.value));
    this.section.dataset.value = this.value.toFixed(3);
    this.show(this.value);
  }

  update() {
    const over = this.value >= this.end && !this.wanted;
    this.button.textContent = this.wanted ? "Pause" : over ? "Replay" : "Play";
    this.section.dataset.playing = this.playing;
    if (this.playing && !this.ticking) {
      this.ticking = true;
      let before = performance.now();
      const tick = (now) => {
        if (!this.playing) {
          this.ticking = false;
          return;
        }
        // The limit prevents a jump after the page was hidden.
        const seconds = Math.min(0.1, (now - before) / 1000);
        before = now;
        this.to(this.value + seconds * this.rate(this.value));
        if (this.value >= this.end) {
          this.wanted = false;
          this.update();
        }
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }
  }
}

// Calls `choose(value)` when the user selects a radio button, and returns a function that selects one without a call.
function choices(section, name, choose) {
  const inputs = [...section.querySelectorAll(`input[name="${name}"]`)];
  for (const input of inputs) input.addEventListener("change", () => choose(Number(input.value)));
  return (value) => {
    for (const input of inputs) input.checked = Number(input.value) === value;
  };
}
