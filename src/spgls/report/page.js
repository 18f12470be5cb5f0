"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const numbers = data.kind === "numbers";
  const NS = "http://www.w3.org/2000/svg";
  // Ours is the last of the models, and the only one that is drawn without gaps.
  const LOOKS = [["7 4", "dashed"], ["2 4", "dotted"], ["9 3 2 3", "double"]];
  const look = (at) => (at === data.models.length - 1 ? ["", "solid"] : LOOKS[at % 3]);
  const byId = (id) => document.getElementById(id);
  const pull = byId("pull"), share = byId("share"), row = byId("row");

  function fmt(x) {
    if (x === null || !isFinite(x)) return "–";
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) return x.toExponential(2).replace(/-/g, "−");
    return String(Number(x.toPrecision(4))).replace("-", "−");
  }
  const percent = (x) => Math.round(100 * x) + "%";

  function make(tag, text, attributes) {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    for (const name in attributes || {}) node.setAttribute(name, attributes[name]);
    return node;
  }
  function draw(parent, tag, attributes, text) {
    const node = document.createElementNS(NS, tag);
    for (const name in attributes) node.setAttribute(name, attributes[name]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }
  function fill(table, head, rows) {
    const line = make("tr");
    head.forEach((name, at) => line.appendChild(make("th", name, at ? { scope: "col", class: "n" } : { scope: "col" })));
    table.tHead.replaceChildren(line);
    table.tBodies[0].replaceChildren(...rows.map((cells) => {
      const tr = make("tr");
      cells.forEach((cell, at) => {
        const td = at ? make("td", null, { class: "n" }) : make("th", null, { scope: "row" });
        if (cell instanceof Node) td.appendChild(cell); else td.textContent = cell;
        if (cell instanceof Node) td.className = "";
        tr.appendChild(td);
      });
      return tr;
    }));
  }

  // Errors of a population are mixtures of those on honest and on moved rows.
  const mixed = (model, g, s) => (1 - s) * model.honest + s * model.attacked[g];
  const shown = (value) => (numbers ? Math.sqrt(Math.max(value, 0)) : value);
  const r2 = (value) => 1 - value / data.variance;
  const unit = numbers ? "root mean squared error" : "accuracy";

  function ticks(low, high) {
    const raw = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= raw * 0.999) || raw;
    const found = [];
    for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(t);
    return found;
  }

  function chart(place, titled, xs, curves, here, xname) {
    const W = 460, H = 300, L = 58, R = 12, T = 12, B = 44;
    const all = curves.flat().filter((v) => v !== null && isFinite(v));
    let low = Math.min(...all), high = Math.max(...all);
    if (numbers) low = Math.min(low, 0.8 * low);
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    low -= room; high += room;
    const x = (v) => L + ((v - xs[0]) / (xs[xs.length - 1] - xs[0])) * (W - L - R);
    const y = (v) => H - B - ((v - low) / (high - low)) * (H - T - B);
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-labelledby", titled);
    for (const t of ticks(low, high)) {
      draw(svg, "line", { class: "grid", x1: L, x2: W - R, y1: y(t), y2: y(t) });
      draw(svg, "text", { x: L - 6, y: y(t) + 4, "text-anchor": "end" }, fmt(Number(t.toPrecision(3))));
    }
    for (const t of [0, 0.25, 0.5, 0.75, 1].filter((v) => v >= xs[0] && v <= xs[xs.length - 1] + 1e-9)) {
      draw(svg, "text", { x: x(t), y: H - B + 18, "text-anchor": t === 1 ? "end" : "middle" }, percent(t));
    }
    draw(svg, "line", { class: "axis", x1: L, x2: W - R, y1: H - B, y2: H - B });
    draw(svg, "text", { x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle" }, xname);
    draw(svg, "line", { class: "here", x1: x(here), x2: x(here), y1: T, y2: H - B });
    curves.forEach((values, at) => {
      const points = values.map((v, i) => `${x(xs[i]).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
      const style = { class: "curve", points, style: `stroke: var(--m${at % 4})` };
      if (look(at)[0]) style["stroke-dasharray"] = look(at)[0];
      draw(svg, "polyline", style);
      let near = 0;
      xs.forEach((v, i) => { if (Math.abs(v - here) < Math.abs(xs[near] - here)) near = i; });
      draw(svg, "circle", { cx: x(xs[near]), cy: y(values[near]), r: 4.5, style: `fill: var(--m${at % 4})` });
    });
    place.replaceChildren(svg);
  }

  const shares = Array.from({ length: 21 }, (_, i) => i / 20);

  function name(model, at) {
    const span = make("span"), key = make("span", null, { class: "key", "aria-hidden": "true" });
    key.style.borderTopColor = `var(--m${at % 4})`;
    key.style.borderTopStyle = look(at)[1];
    span.append(key, model.name);
    return span;
  }

  function errors(g, s) {
    chart(byId("chart-share"), "c-share", shares, data.models.map((m) => shares.map((v) => shown(mixed(m, g, v)))), s, unit + ", by share who react");
    chart(byId("chart-pull"), "c-pull", data.pulls, data.models.map((m) => data.pulls.map((_, i) => shown(mixed(m, i, s)))), data.pulls[g], unit + ", by gap closed");
    const head = numbers
      ? ["Model", "honest, R2", "all react, R2", "mixed, R2", "mixed, error"]
      : ["Model", "honest", "all react", "mixed"];
    const rows = data.models.map((m, at) => {
      const value = mixed(m, g, s);
      return numbers
        ? [name(m, at), fmt(r2(m.honest)), fmt(r2(m.attacked[g])), fmt(r2(value)), fmt(shown(value))]
        : [name(m, at), fmt(m.honest), fmt(m.attacked[g]), fmt(value)];
    });
    if (numbers && data.fromGoal !== null) rows.push(["y from z alone", "–", fmt(r2(data.fromGoal)), "–", "–"]);
    fill(byId("errors"), head, rows);
    const better = (a, b) => (numbers ? mixed(a, g, s) <= mixed(b, g, s) : mixed(a, g, s) >= mixed(b, g, s));
    const best = data.models.reduce((a, b) => (better(a, b) ? a : b));
    byId("said").textContent = `Where ${percent(s)} of people react and close ${percent(data.pulls[g])} of their gaps against ${data.reference}, the best of these models is ${best.name}.`;
  }

  function features(g) {
    const step = data.gap / (data.gammas[g] + data.reach);
    const far = data.features.map((f) => (f.sd ? (Math.abs(f.direction) * step) / f.sd : 0));
    const most = Math.max(...far, 1e-300);
    fill(byId("features"), ["Feature", "weight", "average change", "in standard deviations", ""],
      data.features.map((f, at) => {
        const bar = make("span", null, { class: "bar", "aria-hidden": "true" });
        bar.style.width = (6 * far[at]) / most + "rem";
        return f.fixed
          ? [f.name, fmt(f.coef), "cannot be changed", "0", ""]
          : [f.name, fmt(f.coef), fmt(Math.abs(f.direction) * step), fmt(far[at]), bar];
      }));
  }

  function example(g) {
    const one = data.rows[Number(row.value)];
    const step = (one.goal - one.before) / (data.gammas[g] + data.reach);
    const after = one.before + step * data.reach;
    const call = (v) => (numbers ? fmt(v) : `${data.classes[v > data.threshold ? 1 : 0]} (score ${fmt(v)})`);
    byId("row-said").textContent = numbers
      ? `The model says ${call(one.before)} before and ${call(after)} after; its people would like ${fmt(one.goal)}.`
      : `The model says ${call(one.before)} before and ${call(after)} after; its people would like a score of ${fmt(one.goal)}.`;
    fill(byId("row-table"), ["Feature", "before", "after", "change"],
      data.features.map((f, at) => {
        const change = f.fixed ? 0 : f.direction * step;
        return [f.name, fmt(one.cells[at]), fmt(one.cells[at] + change), fmt(change)];
      }));
  }

  function refresh() {
    const g = Number(pull.value), s = Number(share.value) / 100;
    const strong = `${percent(data.pulls[g])} (gamma ${fmt(data.gammas[g])})`;
    byId("pull-said").textContent = strong;
    byId("share-said").textContent = percent(s);
    pull.setAttribute("aria-valuetext", strong);
    share.setAttribute("aria-valuetext", percent(s));
    errors(g, s);
    features(g);
    example(g);
  }
  pull.addEventListener("input", refresh);
  share.addEventListener("input", refresh);
  row.addEventListener("change", () => example(Number(pull.value)));
  refresh();
})();
