"use strict";
/* One interactive frame for every chart: scales, axes, hover, keyboard, zoom. Text enters by textContent only. */
const Chart = (() => {
  const NS = "http://www.w3.org/2000/svg";
  let serial = 0;

  function svg(name, attributes, parent, text) {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  function html(name, className, parent, text) {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    if (parent) parent.appendChild(element);
    return element;
  }

  function button(className, text, parent, label) {
    const element = html("button", className, parent, text);
    element.type = "button";
    if (label) element.setAttribute("aria-label", label);
    return element;
  }

  /* Three significant digits, as the tables write them. */
  function figure(value) {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value), sign = value < 0 ? "−" : "";
    if (size >= 1e6 || size < 1e-4) {
      const [mantissa, exponent] = size.toExponential(2).split("e");
      const raised = String(Number(exponent)).replace(/[-\d]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
      return sign + Number(mantissa) + " × 10" + raised;
    }
    if (size >= 1000) return sign + Math.round(size).toLocaleString("en");
    return sign + size.toPrecision(3);
  }

  /* A number that was chosen, not estimated: no zeros at its end. */
  function plain(value) {
    const text = figure(value);
    return text.includes(".") && !text.includes("×") ? text.replace(/\.?0+$/, "") : text;
  }

  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw)), share = raw / power;
    const step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10), found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }

  /* Texts of ticks: with more decimals where three digits would make two of them the same. */
  function tickTexts(values) {
    const short = values.map(plain);
    if (new Set(short).size === values.length || values.length < 2) return short;
    const places = Math.min(12, Math.max(0, Math.ceil(-Math.log10(Math.abs(values[1] - values[0])) - 1e-9)));
    return values.map((value) => value.toFixed(places).replace("-", "−"));
  }

  function linear(domain, range) {
    const span = domain[1] - domain[0] || 1, slope = (range[1] - range[0]) / span;
    const scale = (value) => range[0] + (value - domain[0]) * slope;
    scale.invert = (pixel) => domain[0] + (pixel - range[0]) / slope;
    scale.domain = domain;
    scale.range = range;
    return scale;
  }

  function padded(low, high, share) {
    const pad = (high - low || Math.abs(high) || 1) * share;
    return [low - pad, high + pad];
  }

  function horizontal(ctx, at, title) {
    const { plane, x, width, margin } = ctx;
    svg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: at, y2: at }, plane);
    const values = ticks(x.domain[0], x.domain[1], Math.max(2, Math.round((width - margin.left - margin.right) / 90))), texts = tickTexts(values);
    for (const [i, tick] of values.entries()) {
      svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: at, y2: at + 5 }, plane);
      svg("text", { x: x(tick), y: at + 18, "text-anchor": "middle" }, plane, texts[i]);
    }
    svg("text", { class: "title", x: width - margin.right, y: at + 37, "text-anchor": "end" }, plane, shortened(title, (width - margin.left - margin.right) / 7));
  }

  function vertical(ctx, y, title) {
    const { plane, width, margin } = ctx;
    const values = ticks(y.domain[0], y.domain[1], Math.max(2, Math.round(Math.abs(y.range[0] - y.range[1]) / 48))), texts = tickTexts(values);
    for (const [i, tick] of values.entries()) {
      svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }, plane);
      svg("text", { x: margin.left - 8, y: y(tick) + 4, "text-anchor": "end" }, plane, texts[i]);
    }
    svg("text", { class: "title", x: 0, y: 12 }, plane, shortened(title, width / 7));
  }

  function shortened(text, length) {
    const letters = Array.from(String(text));
    return letters.length > length ? letters.slice(0, Math.max(4, Math.floor(length) - 1)).join("") + "…" : letters.join("");
  }

  function path(points) {
    return points.map(([a, b], i) => (i ? "L" : "M") + a.toFixed(2) + " " + b.toFixed(2)).join("");
  }

  /*
   * holder: the element that receives the chart.
   * options.label: what a screen reader says; options.height(width); options.margin;
   * options.domain: [low, high] of x, or null for a chart that cannot be zoomed;
   * options.draw(ctx): draws into ctx.plane with ctx.x, ctx.width, ctx.height;
   * options.stops(): the x values that the arrow keys visit; options.read(index): { x, y, lines, marks }.
   */
  function frame(holder, options) {
    const id = "chart-" + ++serial, margin = options.margin;
    const bar = html("div", "chart-bar", holder);
    const plot = html("div", "plot", holder);
    const tip = html("div", "tip", plot);
    tip.hidden = true;
    const root = svg("svg", { "aria-hidden": "true", focusable: "false" }, plot);
    const live = html("div", "sr", holder);
    live.setAttribute("aria-live", "polite");
    const state = { domain: options.domain && options.domain.slice(), at: -1, from: null };
    let ctx = null;

    function draw() {
      const width = Math.max(240, Math.round(plot.clientWidth || 640)), height = options.height(width);
      root.replaceChildren();
      root.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const defs = svg("defs", {}, root);
      const weave = svg("pattern", { id: id + "-hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, defs);
      svg("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 7 }, weave);
      const plane = svg("g", {}, root);
      const hatch = `url(#${id}-hatch)`;
      let windows = 0;
      const clipped = (top, bottom) => {
        const name = id + "-window-" + ++windows;
        svg("rect", { x: margin.left, y: top, width: Math.max(1, width - margin.left - margin.right), height: Math.max(0, bottom - top) }, svg("clipPath", { id: name }, defs));
        return `url(#${name})`;
      };
      const x = state.domain ? linear(state.domain, [margin.left, width - margin.right]) : null;
      ctx = { root, plane, width, height, margin, x, clipped, hatch };
      options.draw(ctx);
      ctx.over = svg("g", {}, root);
      if (buttons) {
        const whole = state.domain[0] <= options.domain[0] && state.domain[1] >= options.domain[1];
        buttons.out.disabled = buttons.reset.disabled = whole;
      }
      show(state.at, false);
    }

    function show(index, aloud) {
      state.at = index;
      ctx.over.replaceChildren();
      const reading = index >= 0 && options.read ? options.read(index, ctx) : null;
      if (!reading || (state.domain && (reading.x < state.domain[0] || reading.x > state.domain[1]))) {
        tip.hidden = true;
        return;
      }
      const left = reading.left !== undefined ? reading.left : ctx.x(reading.x);
      if (reading.cross) svg("line", { class: "cross", x1: left, x2: left, y1: reading.cross[0], y2: reading.cross[1] }, ctx.over);
      for (const mark of reading.marks || []) svg("circle", { class: mark.class, cx: left, cy: mark.y, r: 5 }, ctx.over);
      tip.replaceChildren();
      html("b", "", tip, reading.lines[0]);
      for (const line of reading.lines.slice(1)) html("div", "", tip, line);
      tip.hidden = false;
      const share = plot.clientWidth / ctx.width, room = tip.offsetWidth + 14;
      const side = left * share + room > plot.clientWidth ? Math.max(0, left * share - room) : left * share + 14;
      tip.style.left = side + "px";
      tip.style.top = Math.max(0, reading.top * share - 10) + "px";
      if (aloud) live.textContent = reading.lines.join(". ");
    }

    function nearest(event) {
      const box = root.getBoundingClientRect(), pixel = ((event.clientX - box.left) / box.width) * ctx.width;
      const value = ctx.x.invert(pixel), stops = options.stops();
      let best = -1, gap = Infinity;
      stops.forEach((stop, i) => { const d = Math.abs(stop - value); if (d < gap) { gap = d; best = i; } });
      return { best, value: Math.min(Math.max(value, state.domain[0]), state.domain[1]), pixel };
    }

    function zoomTo(low, high) {
      const [least, most] = options.domain, smallest = (most - least) / 200;
      if (high - low < smallest) { const middle = (low + high) / 2; low = middle - smallest / 2; high = middle + smallest / 2; }
      state.domain = [Math.max(least, low), Math.min(most, high)];
      draw();
    }

    function zoomBy(factor) {
      const [low, high] = state.domain, stops = options.stops();
      const middle = state.at >= 0 ? stops[state.at] : (low + high) / 2, half = ((high - low) * factor) / 2;
      zoomTo(middle - half, middle + half);
    }

    let buttons = null;
    if (options.domain) {
      html("span", "spring", bar);
      const group = html("span", "zoom", bar);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", "Zoom");
      buttons = { in: button("quiet", "+", group, "Zoom in"), out: button("quiet", "−", group, "Zoom out"), reset: button("quiet", "All", group, "Show the whole range") };
      buttons.in.addEventListener("click", () => zoomBy(0.5));
      buttons.out.addEventListener("click", () => zoomBy(2));
      buttons.reset.addEventListener("click", () => zoomTo(...options.domain));
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-roledescription", "interactive chart");
      plot.setAttribute("aria-label", options.label + " Left and right arrow keys read the values, plus and minus zoom, zero shows the whole range.");
      plot.addEventListener("pointermove", (event) => {
        if (!ctx) return;
        const { best, pixel } = nearest(event);
        if (state.from === null || Math.abs(pixel - state.from.pixel) < 6) return void show(best, false);
        if (!plot.hasPointerCapture(event.pointerId)) plot.setPointerCapture(event.pointerId); // from here on it is a drag, not a click
        const [a, b] = [state.from.pixel, pixel].sort((p, q) => p - q), from = Math.max(a, margin.left), to = Math.min(b, ctx.width - margin.right);
        show(-1, false);
        svg("rect", { class: "brush", x: from, y: 18, width: Math.max(0, to - from), height: Math.max(0, ctx.height - margin.bottom - 18) }, ctx.over);
      });
      plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        state.from = nearest(event);
      });
      plot.addEventListener("pointerup", (event) => {
        const from = state.from, to = nearest(event);
        state.from = null;
        if (from && Math.abs(to.pixel - from.pixel) >= 12) zoomTo(Math.min(from.value, to.value), Math.max(from.value, to.value));
      });
      plot.addEventListener("pointercancel", () => { state.from = null; show(-1, false); });
      plot.addEventListener("pointerleave", () => { if (state.from === null) show(-1, false); });
      plot.addEventListener("dblclick", () => zoomTo(...options.domain));
      plot.addEventListener("keydown", (event) => {
        const stops = options.stops(), last = stops.length - 1;
        const visible = stops.findIndex((stop) => stop >= state.domain[0]);
        const moves = { ArrowRight: state.at < 0 ? visible : Math.min(last, state.at + 1), ArrowLeft: state.at < 0 ? visible : Math.max(0, state.at - 1), Home: 0, End: last };
        if (event.key in moves) show(moves[event.key], true);
        else if (event.key === "+" || event.key === "=") zoomBy(0.5);
        else if (event.key === "-") zoomBy(2);
        else if (event.key === "0") zoomTo(...options.domain);
        else if (event.key === "Escape") show(-1, false);
        else return;
        event.preventDefault();
      });
    } else {
      root.setAttribute("role", "img");
      root.removeAttribute("aria-hidden");
      root.setAttribute("aria-label", options.label);
    }

    let seen = 0;
    new ResizeObserver(() => { if (plot.clientWidth && plot.clientWidth !== seen) { seen = plot.clientWidth; draw(); } }).observe(plot);
    return { bar, plot, root, draw, show, tip, live };
  }

  return { svg, html, button, figure, plain, linear, padded, horizontal, vertical, path, frame, shortened, ticks };
})();
