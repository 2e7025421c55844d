/* The figures: a curve over its histogram, shares and means along S, the strengths of dependence, the trade-off. */
const Figures = (() => {
  const { svg, html, button, figure, plain, linear, padded, horizontal, vertical, path } = Chart;

  function runs(flags, wanted) {
    const found = [];
    flags.forEach((flag, i) => {
      if (Boolean(flag) !== wanted) return;
      if (found.length && found[found.length - 1][1] === i - 1) found[found.length - 1][1] = i;
      else found.push([i, i]);
    });
    return found;
  }

  const sparseOf = (curve) => (curve.sparse.length ? curve.sparse : curve.grid.map(() => false));

  /* The range of S without the outer 1 % of rows at an end where they take a third of it, or 5 % that then take half. */
  function rangeOf(law, low, high) {
    const at = (share) => law.values[law.shares.findIndex((s) => s >= share)];
    let cut = 0;
    for (const [tail, most] of [[0.01, 1 / 3], [0.05, 1 / 2]]) {
      const width = most * (high - low), ends = [at(tail) - low > width ? at(tail) : low, high - at(1 - tail) > width ? at(1 - tail) : high];
      if (ends[0] !== low || ends[1] !== high) cut = 100 * tail;
      [low, high] = ends;
    }
    return { domain: [low, high], note: cut ? " (outer " + cut + " % not drawn)" : "" };
  }

  /* A curve that goes on to the ends of its outer groups, as far as they are in the domain. */
  function extended(curve, domain) {
    const last = curve.grid.length - 1, within = (values) => [values[0], ...values, values[last]];
    const grid = [Math.min(curve.grid[0], Math.max(curve.start[0], domain[0])), ...curve.grid, Math.max(curve.grid[last], Math.min(curve.end[last], domain[1]))];
    return { ...curve, grid, mean: within(curve.mean), low: within(curve.low), high: within(curve.high), sparse: within(sparseOf(curve)) };
  }

  /* The means that can be trusted, with their bands. */
  function extent(curves, domain) {
    for (const strict of [true, false]) {
      const values = [];
      for (const curve of curves) {
        const sparse = sparseOf(curve);
        curve.grid.forEach((s, i) => {
          if (s >= domain[0] && s <= domain[1] && !(strict && sparse[i])) values.push(curve.mean[i], curve.overall, curve.low[i], curve.high[i]);
        });
      }
      if (values.length) return padded(Math.min(...values), Math.max(...values), 0.06);
    }
    return padded(curves[0].overall, curves[0].overall, 0.5);
  }

  function drawCurve(ctx, groups, y, name, clip) {
    const { x, plane } = ctx, curve = extended(groups, x.domain), sparse = curve.sparse;
    const at = (values) => curve.grid.map((s, i) => [x(s), y(values[i])]);
    const layer = svg("g", { "clip-path": clip, "data-curve": name }, plane);
    {
      const upper = at(curve.high), lower = at(curve.low).reverse();
      svg("path", { class: "band " + name, d: path(upper.concat(lower)) + "Z" }, layer);
    }
    const mean = at(curve.mean);
    for (const [a, b] of runs(sparse, false)) svg("path", { class: "line " + name, d: path(mean.slice(a, b + 1)) }, layer);
    for (const [a, b] of runs(sparse, true)) svg("path", { class: "line thin " + name, d: path(mean.slice(Math.max(0, a - 1), Math.min(mean.length, b + 2))) }, layer);
  }

  function hatchSparse(ctx, curve, top, bottom) {
    const { x, plane, hatch } = ctx, clip = ctx.clipped(top, bottom);
    for (const [a, b] of runs(sparseOf(curve), true)) {
      const from = a ? (curve.grid[a - 1] + curve.grid[a]) / 2 : curve.start[a];
      const to = b < curve.grid.length - 1 ? (curve.grid[b] + curve.grid[b + 1]) / 2 : curve.end[b];
      svg("rect", { class: "sparse", fill: hatch, x: x(from), y: top, width: Math.max(0, x(to) - x(from)), height: bottom - top, "clip-path": clip }, plane);
    }
  }

  /* Beside the line of the overall mean, at the end and on the side where the curves are farther away. */
  function labelMean(ctx, curves, overall, y) {
    const { plane, x, width, margin } = ctx, span = Math.max(0.22, 130 / (width - margin.left - margin.right)) * (x.domain[1] - x.domain[0]);
    const room = (low, high, side) => {
      const gaps = curves.map((c) => extended(c, x.domain)).flatMap((c) => c.grid.map((s, i) => (s >= low && s <= high ? side * (y(overall) - y(c.mean[i])) : Infinity)).filter((g) => g > -4));
      return Math.min(60, ...gaps);
    };
    const places = [[x.domain[1] - span, x.domain[1], 1], [x.domain[0], x.domain[0] + span, 1], [x.domain[1] - span, x.domain[1], -1], [x.domain[0], x.domain[0] + span, -1]];
    const scores = places.map((place) => room(...place)), best = scores.indexOf(Math.max(...scores)), right = best % 2 === 0;
    if (scores[best] < 14) return void svg("text", { class: "halo", x: width - margin.right, y: 24, "text-anchor": "end" }, plane, "dotted: overall mean " + figure(overall));
    svg("text", { class: "halo", x: right ? width - margin.right : margin.left + 4, y: y(overall) + (best < 2 ? -6 : 15), "text-anchor": right ? "end" : "start" }, plane, "overall mean " + figure(overall));
  }

  function reading(curve, i, said) {
    const band = curve.low.length ? " (" + figure(curve.low[i]) + " to " + figure(curve.high[i]) + ")" : "";
    return said + ": " + figure(curve.mean[i]) + band;
  }

  /* E[f | S = s] for all rows, for the positives and for the model before, over the histogram of S. */
  function curve(holder, attribute, before, names, small) {
    const shown = [{ name: "", said: "mean", legend: "All rows", curve: attribute.all_rows.curves.gdp, on: true }];
    if (attribute.positives && attribute.positives.curves.gdp && !small) shown.push({ name: "second", said: "favourable outcome", legend: "Favourable outcome", curve: attribute.positives.curves.gdp, on: true });
    if (before && before.all_rows.curves.gdp) shown.push({ name: "ghost", said: "before", legend: "Before", curve: before.all_rows.curves.gdp, on: true });
    const main = shown[0].curve, bins = attribute.histogram, most = Math.max(1, ...bins.counts);
    const { domain, note } = rangeOf(attribute.law, Math.min(main.grid[0], bins.edges[0]), Math.max(main.grid[main.grid.length - 1], bins.edges[bins.edges.length - 1]));
    let y = null, bottom = 0;
    const chart = Chart.frame(holder, {
      label: "Mean of " + names.score + " at each value of " + attribute.name + ".",
      domain,
      margin: { left: 52, right: 14, bottom: 46 },
      height: (width) => (small ? 210 : Math.round(Math.min(470, Math.max(330, width * 0.52)))),
      stops: () => main.grid,
      draw(ctx) {
        const { plane, x, height, margin } = ctx, floor = height - margin.bottom, clip = ctx.clipped(0, floor), strip = Math.round(height * 0.17);
        bottom = floor - strip - 14;
        y = linear(extent(shown.filter((c) => c.on).map((c) => c.curve), x.domain), [bottom, 30]);
        const bars = svg("g", { class: "histogram", "clip-path": clip }, plane);
        bins.counts.forEach((count, i) => {
          const left = x(bins.edges[i]), right = x(bins.edges[i + 1]), tall = count ? Math.max(1, (strip * count) / most) : 0;
          svg("rect", { class: "bars", x: left + 0.5, width: Math.max(0.5, right - left - 1), y: floor - tall, height: tall }, bars);
        });
        vertical(ctx, y, "Mean of " + names.score);
        hatchSparse(ctx, main, 22, floor);
        svg("line", { class: "mean", x1: margin.left, x2: ctx.width - margin.right, y1: y(main.overall), y2: y(main.overall) }, plane);
        for (const one of shown.slice().reverse()) if (one.on) drawCurve(ctx, one.curve, y, one.name, ctx.clipped(22, bottom + 4));
        labelMean(ctx, shown.filter((one) => one.on).map((one) => one.curve), main.overall, y);
        for (const contrast of attribute.all_rows.contrasts) {
          const at = contrast.settings.at, left = x(at), top = y(main.overall + contrast.value);
          if (at < x.domain[0] || at > x.domain[1]) continue;
          svg("path", { class: "mark", d: `M${left} ${top - 6}L${left + 6} ${top}L${left} ${top + 6}L${left - 6} ${top}Z` }, plane);
        }
        horizontal(ctx, floor, attribute.name + note);
      },
      read(i) {
        const s = main.grid[i], lines = [Chart.shortened(attribute.name, 30) + " = " + plain(s)], marks = [];
        for (const one of shown) {
          if (!one.on) continue;
          let k = one === shown[0] ? i : one.curve.grid.findIndex((g) => g >= s - 1e-12);
          if (k < 0) continue;
          lines.push(reading(one.curve, k, one.said));
          marks.push({ class: "dot " + one.name, y: y(one.curve.mean[k]) });
        }
        const bin = bins.counts.findIndex((_, b) => s <= bins.edges[b + 1]);
        if (bin >= 0) lines.push(bins.counts[bin].toLocaleString("en") + " rows from " + plain(bins.edges[bin]) + " to " + plain(bins.edges[bin + 1]));
        if (sparseOf(main)[i]) lines.push("sparse: do not trust the curve here");
        return { x: s, lines, marks, top: marks.length ? marks[0].y : 40, cross: [22, bottom] };
      },
    });
    if (small) chart.bar.remove();
    else if (shown.length > 1) {
      shown.slice().reverse().forEach((one) => {
        const toggle = button("quiet legend", "", null, "");
        toggle.removeAttribute("aria-label");
        html("span", "swatch " + one.name, toggle);
        html("span", "", toggle, one.legend);
        toggle.setAttribute("aria-pressed", "true");
        toggle.addEventListener("click", () => {
          if (one.on && shown.filter((c) => c.on).length === 1) return;
          one.on = !one.on;
          toggle.setAttribute("aria-pressed", String(one.on));
          chart.draw();
        });
        chart.bar.prepend(toggle);
      });
    }
    return chart;
  }

  /* A share or a mean in groups along S, with its band; with the scale of several curves, if they are compared. */
  function along(holder, attribute, curve, said, compared) {
    let y = null;
    return Chart.frame(holder, {
      label: said + " in groups along " + attribute.name + ".",
      domain: padded(curve.grid[0], curve.grid[curve.grid.length - 1], 0.01),
      margin: { left: 52, right: 14, bottom: 46 },
      height: (width) => Math.round(Math.min(340, Math.max(240, width * 0.38))),
      stops: () => curve.grid,
      draw(ctx) {
        const { plane, x, height, margin } = ctx, floor = height - margin.bottom;
        y = linear(extent(compared || [curve], x.domain), [floor, 30]);
        vertical(ctx, y, said);
        hatchSparse(ctx, curve, 22, floor);
        svg("line", { class: "mean", x1: margin.left, x2: ctx.width - margin.right, y1: y(curve.overall), y2: y(curve.overall) }, plane);
        drawCurve(ctx, curve, y, "", ctx.clipped(22, floor));
        horizontal(ctx, floor, attribute.name);
      },
      read: (i) => ({ x: curve.grid[i], top: y(curve.mean[i]), cross: [22, 200], marks: [{ class: "dot", y: y(curve.mean[i]) }], lines: [Chart.shortened(attribute.name, 30) + " = " + plain(curve.grid[i]), reading(curve, i, said.toLowerCase())] }),
    });
  }

  /* Dots with whiskers for every measure that runs from 0 to 1. */
  function strength(holder, population) {
    const measures = holder.dataset.measures.split(" "), rows = holder.closest("section").querySelectorAll("tr[data-key]");
    const words = new Map(Array.from(rows).reverse().map((row) => [row.dataset.key, { label: row.cells[0].textContent, sentence: row.cells[row.cells.length - 1].textContent }]));
    const numbers = population.numbers.filter((n) => measures.includes(n.key)).map((n) => ({ ...n, ...words.get(n.key) }));
    if (!numbers.length) {
      holder.closest("figure").remove();
      return null;
    }
    const said = numbers.map((n) => n.label + " " + figure(n.value) + (n.interval ? ", interval " + figure(n.interval.low) + " to " + figure(n.interval.high) : "")).join("; ");
    const row = 44;
    const chart = Chart.frame(holder, {
      label: "Measures from 0 to 1: " + said + ".",
      domain: null,
      margin: { left: 2, right: 16, bottom: 30 },
      height: () => numbers.length * row + 36,
      draw(ctx) {
        const { plane, width, margin } = ctx, wide = width > 620, left = wide ? 290 : margin.left + 6, floor = ctx.height - margin.bottom;
        const x = linear([0, 1], [left, width - margin.right]);
        for (const tick of wide ? [0, 0.2, 0.4, 0.6, 0.8, 1] : [0, 0.5, 1]) {
          svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 4, y2: floor }, plane);
          if (tick === 0.8) continue; // its number would run into the word at the end of the scale
          svg("text", { x: x(tick), y: floor + 18, "text-anchor": tick === 0 && !wide ? "start" : tick === 1 ? "end" : "middle" }, plane, plain(tick) + (tick === 0 ? " nothing" : tick === 1 ? " everything" : ""));
        }
        const clamp = (v) => Math.min(1, Math.max(0, v));
        numbers.forEach((n, i) => {
          const middle = i * row + (wide ? 24 : 32);
          svg("text", wide ? { class: "title", x: 0, y: middle + 4 } : { class: "title halo", x: 0, y: middle - 12 }, plane, Chart.shortened(n.label, wide ? 38 : width / 7.4));
          const group = svg("g", { "data-key": n.key }, plane);
          if (n.interval) svg("line", { class: "whisker", x1: x(clamp(n.interval.low)), x2: x(clamp(n.interval.high)), y1: middle, y2: middle }, group);
          if (n.under_independence !== null) svg("circle", { class: "ring", cx: x(clamp(n.under_independence)), cy: middle, r: 5 }, group);
          svg("circle", { class: "dot", cx: x(clamp(n.value)), cy: middle, r: 5.5 }, group);
          const title = svg("title", {}, group);
          title.textContent = n.label + ": " + n.sentence;
          const end = x(clamp(n.interval ? n.interval.high : n.value)) + 10, room = end < width - 60;
          svg("text", { class: "halo", x: room ? end : x(clamp(n.interval ? n.interval.low : n.value)) - 10, y: middle + 4, "text-anchor": room ? "start" : "end" }, plane, figure(n.value));
        });
      },
    });
    chart.bar.remove();
    return chart;
  }

  /* Performance against the gap that is limited: a point for each trade-off, and squares for the rows of the report. */
  function tradeoff(holder, data, axes) {
    const [gapName, measure, less, worst] = axes, gap = (p) => p.gaps[worst], points = data.points, own = [data.before, data.after];
    const order = points.map((_, i) => i).sort((a, b) => gap(points[a]).value - gap(points[b]).value);
    const every = points.concat(own), ends = every.flatMap((p) => [gap(p).low, gap(p).high]), limit = data.limits[worst];
    const tell = (p) => measure + " " + figure(p.performance) + ", " + gapName.toLowerCase() + " " + figure(gap(p).value) + (p.chosen ? " (chosen)" : "");
    let y = null;
    return Chart.frame(holder, {
      label: "Trade-offs: " + points.map(tell).join("; ") + ".",
      domain: padded(Math.min(0, ...ends), Math.max(...ends), 0.04),
      margin: { left: 52, right: 16, bottom: 46 },
      height: (width) => Math.round(Math.min(420, Math.max(300, width * 0.5))),
      stops: () => order.map((i) => gap(points[i]).value),
      draw(ctx) {
        const { plane, x, height, margin } = ctx, floor = height - margin.bottom, marks = every.map((p) => p.performance);
        y = linear(padded(Math.min(...marks), Math.max(...marks), 0.12), [floor, 30]);
        vertical(ctx, y, measure + (less ? " (lower is better)" : " (higher is better)"));
        horizontal(ctx, floor, gapName + " along " + data.attributes[worst]);
        const layer = svg("g", { "clip-path": ctx.clipped(22, floor) }, plane);
        if (limit) {
          svg("line", { class: "floor", x1: x(limit), x2: x(limit), y1: 22, y2: floor }, layer);
          svg("text", { class: "floor-said halo", x: x(limit) + 5, y: 34 }, layer, "limit " + figure(limit));
        }
        svg("path", { class: "path", d: path(points.map((p) => [x(gap(p).value), y(p.performance)])) }, layer);
        for (const p of points) {
          const group = svg("g", { class: "point" + (p.chosen ? " selected" : "") }, layer), cx = x(gap(p).value), cy = y(p.performance);
          svg("line", { class: "faint", x1: x(gap(p).low), x2: x(gap(p).high), y1: cy, y2: cy }, group);
          if (p.chosen) svg("circle", { class: "chosen", cx, cy, r: 11 }, group);
          svg("circle", { class: "body", cx, cy, r: 5 }, group);
          if (p.chosen) svg("text", { class: "chosen-said halo", x: cx + 15, y: cy + (less ? -8 : 18) }, group, "chosen");
        }
        for (const p of own) {
          const cx = x(gap(p).value), cy = y(p.performance);
          svg("rect", { class: "own", x: cx - 5, y: cy - 5, width: 10, height: 10 }, layer);
        }
      },
      read(k) {
        const p = points[order[k]], g = gap(p);
        return { x: g.value, top: y(p.performance), lines: [order[k] === 0 ? "no limit" : p.chosen ? "chosen" : "trade-off", measure + " " + figure(p.performance), gapName + " " + figure(g.value) + " (" + figure(g.low) + " to " + figure(g.high) + ")"] };
      },
    });
  }

  return { curve, along, strength, tradeoff };
})();
