"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-json").textContent);
  const form = document.querySelector("form.controls");
  const root = document.documentElement;
  const SVG = "http://www.w3.org/2000/svg";
  const MARGIN = { top: 12, right: 14, bottom: 44, left: 58 };

  // What a person has chosen.
  const state = () => {
    const chosen = form.querySelector("input[name=loss]:checked");
    const losses = Object.values(data.panels).flat().map((panel) => panel.loss).filter(Boolean);
    return {
      loss: chosen ? chosen.value : losses[0],
      bands: form.querySelector("input[name=bands]").checked,
      models: new Set([...form.querySelectorAll("input[name=model]:checked")].map((box) => Number(box.value))),
    };
  };

  // Small helpers: elements, numbers, scales.
  const make = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "path", "text", "circle", "rect"].includes(name);
    const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value !== "number") return String(value);
    return String(Number(value.toPrecision(4))).replace("-", "−");
  };
  const nice = (low, high, wanted) => {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  };
  const extent = (values) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || value === undefined) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  };
  const styleOf = (series) => (series.model === null ? series.style : series.model) % 8;

  const column = (name, series, key) => (key ? data.tables[name][key].slice(series.start, series.stop) : []);
  const visible = (panel, now) => panel.series.filter((series) => series.model === null || now.models.has(series.model));
  const shownPanels = (name, now) => data.panels[name].filter((panel) => !panel.loss || panel.loss === now.loss);

  // One scale for all panels of a chart, so that they can be compared by eye.
  const domains = (name, now) => {
    const xs = [], ys = [];
    let zero = false, fixedX = null, fixedY = null;
    for (const panel of shownPanels(name, now)) {
      zero ||= panel.zero;
      fixedX ||= panel.xdomain;
      fixedY ||= panel.ydomain;
      for (const mark of panel.marks || []) xs.push(mark.x);
      for (const series of visible(panel, now)) {
        xs.push(...extent(column(name, series, panel.x)));
        ys.push(...extent(column(name, series, series.y || panel.y)));
        if (now.bands && panel.lower) ys.push(...extent(column(name, series, panel.lower)), ...extent(column(name, series, panel.upper)));
      }
    }
    const finite = (values) => values.filter(Number.isFinite);
    let [x0, x1] = fixedX || extent(finite(xs));
    let [y0, y1] = fixedY || extent(finite(zero ? [0, ...ys] : ys));
    if (!(x1 > x0)) [x0, x1] = [Number.isFinite(x0) ? x0 - 0.5 : 0, Number.isFinite(x0) ? x0 + 0.5 : 1];
    if (!(y1 > y0)) [y0, y1] = [Number.isFinite(y0) ? y0 - 0.5 : 0, Number.isFinite(y0) ? y0 + 0.5 : 1];
    if (!fixedY) {
      const pad = 0.04 * (y1 - y0);
      y1 += pad;
      if (y0 < 0) y0 -= pad;
    }
    return { x: [x0, x1], y: [y0, y1] };
  };

  const linePath = (x, y) => {
    let path = "", pen = "M";
    x.forEach((left, k) => {
      if (y[k] === null) pen = "M";
      else { path += `${pen}${left.toFixed(2)},${y[k].toFixed(2)}`; pen = "L"; }
    });
    return path;
  };
  const bandPath = (x, lower, upper) => {
    const known = x.map((_, k) => k).filter((k) => lower[k] !== null && upper[k] !== null);
    if (!known.length) return "";
    const there = known.map((k) => `${x[k].toFixed(2)},${upper[k].toFixed(2)}`);
    const back = known.reverse().map((k) => `${x[k].toFixed(2)},${lower[k].toFixed(2)}`);
    return `M${there.join("L")}L${back.join("L")}Z`;
  };

  // A panel: a figure whose plot is read by pointer or arrow keys, as a slider over its points.
  const drawPanel = (name, panel, now, domain, holder) => {
    const caption = make("figcaption");
    caption.textContent = panel.title;
    const plot = make("div", { class: "plot", role: "slider", tabindex: "0" });
    holder.replaceChildren(caption, plot);
    const width = Math.max(240, plot.clientWidth || 360), height = panel.diagonal ? Math.min(width, 360) : 270;
    const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    const px = (value) => inner.left + ((value - domain.x[0]) / (domain.x[1] - domain.x[0])) * (inner.right - inner.left);
    const py = (value) => inner.bottom - ((value - domain.y[0]) / (domain.y[1] - domain.y[0])) * (inner.bottom - inner.top);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    for (const tick of nice(...domain.y, 6)) {
      svg.append(make("line", { class: "axis", x1: inner.left, x2: inner.right, y1: py(tick), y2: py(tick) }));
      svg.append(make("text", { x: inner.left - 6, y: py(tick) + 4, "text-anchor": "end" }, show(tick)));
    }
    for (const tick of nice(...domain.x, width < 340 ? 4 : 6)) {
      svg.append(make("line", { class: "axis", x1: px(tick), x2: px(tick), y1: inner.bottom, y2: inner.bottom + 4 }));
      svg.append(make("text", { x: px(tick), y: inner.bottom + 17, "text-anchor": "middle" }, show(tick)));
    }
    svg.append(make("text", { x: (inner.left + inner.right) / 2, y: height - 6, "text-anchor": "middle" }, panel.xlabel));
    svg.append(make("text", { transform: `translate(13 ${(inner.top + inner.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, panel.ylabel));
    if (panel.diagonal) svg.append(make("line", { class: "zero", x1: px(0), y1: py(0), x2: px(1), y2: py(1) }));
    else if (domain.y[0] < 0) svg.append(make("line", { class: "zero", x1: inner.left, x2: inner.right, y1: py(0), y2: py(0) }));
    for (const mark of panel.marks || []) {
      svg.append(make("line", { class: `mark ${mark.kind || ""}`, x1: px(mark.x), x2: px(mark.x), y1: inner.top, y2: inner.bottom }));
    }
    const lines = visible(panel, now).map((series) => {
      const x = column(name, series, panel.x), y = column(name, series, series.y || panel.y);
      const lower = column(name, series, panel.lower), upper = column(name, series, panel.upper);
      const place = (values) => values.map((value) => (value === null ? null : py(value)));
      if (now.bands && panel.lower) svg.append(make("path", { class: `band fill s${styleOf(series)}`, d: bandPath(x.map(px), place(lower), place(upper)) }));
      return { series, x, y, lower, upper, path: make("path", { class: `line s${styleOf(series)}`, d: linePath(x.map(px), place(y)) }) };
    });
    for (const { series, x, y, path } of lines) {
      const known = y.map((_, k) => k).filter((k) => y[k] !== null);
      svg.append(path);
      if (known.length === 1) svg.append(make("circle", { class: `dot fill s${styleOf(series)}`, cx: px(x[known[0]]), cy: py(y[known[0]]), r: 4 }));
    }
    for (const mark of panel.marks || []) {
      const end = px(mark.x) > (inner.left + inner.right) / 2;
      const lift = mark.kind ? 14 : 0;
      svg.append(make("text", { x: px(mark.x) + (end ? -4 : 4), y: inner.top + 10 + lift, "text-anchor": end ? "end" : "start" }, mark.label));
    }
    const cursor = make("g");
    svg.append(cursor);
    plot.append(svg);
    makeReadable(plot, panel, lines, { px, py, inner, width, cursor });
  };

  const makeReadable = (plot, panel, lines, { px, py, inner, width, cursor }) => {
    const grid = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const tip = make("div", { class: "tip", hidden: "" });
    plot.append(tip);
    const nearest = (values, wanted) => values.reduce((best, value, k) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? k : best), 0);
    const entries = (at) => lines.map((line) => {
      const k = nearest(line.x, at);
      const interval = line.lower.length && line.lower[k] !== null ? ` (${show(line.lower[k])} to ${show(line.upper[k])})` : "";
      return { line, k, text: `${line.series.label} ${show(line.y[k])}${interval}` };
    });
    const clear = () => { tip.hidden = true; cursor.replaceChildren(); };
    let index = 0;
    const read = (position, visibly) => {
      if (!grid.length) return;
      index = Math.min(grid.length - 1, Math.max(0, position));
      const found = entries(grid[index]), heading = `${panel.xlabel} ${show(grid[index])}`;
      plot.setAttribute("aria-valuenow", index);
      plot.setAttribute("aria-valuetext", `${heading}: ${found.map((entry) => entry.text).join("; ")}`);
      if (!visibly) return;
      const left = px(grid[index]);
      cursor.replaceChildren(make("line", { class: "cursor", x1: left, x2: left, y1: inner.top, y2: inner.bottom }));
      const title = make("strong");
      title.textContent = heading;
      tip.replaceChildren(title);
      for (const { line, k, text } of found) {
        if (line.y[k] !== null) cursor.append(make("circle", { class: `dot fill s${styleOf(line.series)}`, cx: px(line.x[k]), cy: py(line.y[k]), r: 4 }));
        const row = make("div");
        row.append(swatch(line.series), document.createTextNode(text));
        tip.append(row);
      }
      tip.hidden = false;
      const scale = plot.clientWidth / width;
      const room = plot.clientWidth - tip.offsetWidth - 4;
      tip.style.left = `${Math.max(0, Math.min(room, left * scale + 12))}px`;
      tip.style.top = `${inner.top * scale + 8}px`;
    };
    plot.setAttribute("aria-label", `${panel.title}: ${panel.ylabel} by ${panel.xlabel}. Arrow keys read single values.`);
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", Math.max(0, grid.length - 1));
    plot.setAttribute("aria-orientation", "horizontal");
    read(0, false);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const share = ((event.clientX - box.left) * (width / box.width) - inner.left) / (inner.right - inner.left);
      const low = px(0), unit = px(1) - low;
      read(nearest(grid, (inner.left + share * (inner.right - inner.left) - low) / unit), true);
    });
    plot.addEventListener("pointerleave", clear);
    plot.addEventListener("blur", clear);
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) read(index, true); });
    plot.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.round(grid.length / 10));
      const moves = { ArrowRight: index + 1, ArrowUp: index + 1, ArrowLeft: index - 1, ArrowDown: index - 1, PageUp: index + page, PageDown: index - page, Home: 0, End: grid.length - 1 };
      if (event.key === "Escape") clear();
      if (!(event.key in moves)) return;
      event.preventDefault();
      read(moves[event.key], true);
    });
  };

  const swatch = (series) => make("svg", { class: "swatch", viewBox: "0 0 24 8", "aria-hidden": "true" }, make("line", { class: `line s${styleOf(series)}`, x1: 0, y1: 4, x2: 24, y2: 4 }));

  const drawChart = (chart, now) => {
    const name = chart.dataset.chart, panels = shownPanels(name, now), domain = domains(name, now);
    const holder = chart.querySelector(".panels");
    while (holder.children.length > panels.length) holder.lastChild.remove();
    while (holder.children.length < panels.length) holder.append(make("figure", { class: "panel" }));
    panels.forEach((panel, k) => drawPanel(name, panel, now, domain, holder.children[k]));
    drawLegend(chart.querySelector(".legend"), panels, now);
  };

  // A model's entry switches it on and off everywhere, like its box at the top of the page.
  const drawLegend = (legend, panels, now) => {
    const entries = new Map(panels.flatMap((panel) => panel.series).map((series) => [series.label, series]));
    const held = [...legend.children].findIndex((item) => item.contains(document.activeElement));
    legend.replaceChildren(...[...entries.values()].map((series) => {
      const shown = [swatch(series), document.createTextNode(series.label)];
      if (series.model === null) return make("li", {}, ...shown);
      const button = make("button", { type: "button", "aria-pressed": now.models.has(series.model) }, ...shown);
      button.addEventListener("click", () => {
        const box = form.querySelector(`input[name=model][value="${series.model}"]`);
        box.checked = !box.checked;
        draw();
      });
      return make("li", {}, button);
    }));
    if (held >= 0) legend.children[held]?.firstChild?.focus?.();
  };

  const draw = () => {
    const now = state();
    document.querySelectorAll("[data-loss]").forEach((part) => { part.hidden = part.dataset.loss !== now.loss; });
    document.querySelectorAll("tr[data-model-row]").forEach((row) => {
      const model = data.models.indexOf(row.dataset.modelRow);
      row.hidden = model >= 0 && !now.models.has(model);
    });
    document.querySelectorAll(".chart").forEach((chart) => drawChart(chart, now));
  };

  // Tables: long ones are made when they are opened; files hold all digits.
  const fill = (place) => {
    if (place.firstChild) return;
    const table = data.tables[place.dataset.fill], names = Object.keys(table);
    const caption = make("caption");
    caption.textContent = place.dataset.caption;
    const head = make("tr");
    for (const name of names) {
      const cell = make("th", { scope: "col" });
      cell.textContent = name.replaceAll("_", " ");
      head.append(cell);
    }
    const body = make("tbody");
    table[names[0]].forEach((_, k) => {
      const row = make("tr");
      for (const name of names) {
        const cell = make("td");
        cell.textContent = show(table[name][k]);
        row.append(cell);
      }
      body.append(row);
    });
    place.append(make("table", {}, caption, make("thead", {}, head), body));
  };
  const csv = (table) => {
    const names = Object.keys(table);
    const quote = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const rows = table[names[0]].map((_, k) => names.map((name) => quote(table[name][k])).join(","));
    return [names.map(quote).join(","), ...rows].join("\n") + "\n";
  };
  document.querySelectorAll("details.numbers").forEach((details) => {
    details.addEventListener("toggle", () => { if (details.open) details.querySelectorAll("[data-fill]").forEach(fill); });
  });
  document.querySelectorAll("button.download").forEach((button) => {
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([csv(data.tables[button.dataset.table])], { type: "text/csv" }));
      const link = make("a", { href: address, download: `${button.dataset.table}.csv` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
  });

  const theme = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  theme.setAttribute("aria-pressed", dark());
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    theme.setAttribute("aria-pressed", dark());
  });
  form.addEventListener("change", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 100); });
  draw();
})();
