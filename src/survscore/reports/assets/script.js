"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-json").textContent);
  const form = document.querySelector("form.controls");
  const root = document.documentElement;
  const SVG = "http://www.w3.org/2000/svg";
  const MARGIN = { top: 12, right: 14, bottom: 44, left: 58 };

  // Columns of repeated texts come as codes.
  for (const table of Object.values(data.tables)) {
    for (const [name, column] of Object.entries(table)) {
      if (!Array.isArray(column)) table[name] = column.codes.map((code) => column.values[code]);
    }
  }

  // What a person has chosen.
  const state = () => ({
    metric: form.querySelector("input[name=metric]:checked")?.value ?? data.metrics[0],
    bands: form.querySelector("input[name=bands]").checked,
    models: new Set([...form.querySelectorAll("input[name=model]:checked")].map((box) => Number(box.value))),
  });

  // Small helpers: elements, numbers, scales.
  const make = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "path", "text", "circle"].includes(name);
    const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const show = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value !== "number") return String(value);
    const large = Math.abs(value) >= 1000;
    const text = Number.isInteger(value) ? value : Number(large ? value.toFixed(1) : value.toPrecision(4));
    const tiny = text !== 0 && Math.abs(text) < 1e-4; // as Python writes them
    return (tiny ? text.toExponential() : String(text)).replaceAll("-", "−");
  };
  const nice = (low, high, wanted) => {
    const power = 10 ** Math.floor(Math.log10((high - low) / wanted || 1));
    const off = (step) => Math.abs(Math.log((high - low) / step / wanted));
    const step = [1, 2, 2.5, 5, 10].map((k) => k * power).reduce((best, one) => (off(one) < off(best) ? one : best));
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  };
  const extent = (values) => {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  };

  // A line's looks: eight colours, and dashes that differ where colours come again. One curve for all is grey and dotted.
  const styleOf = (series) => {
    if (series.null) return "null";
    const k = series.model ?? series.style;
    return `s${k % 8} d${(k + Math.floor(k / 8)) % 8}`;
  };
  const swatch = (series) => make("svg", { class: "swatch", viewBox: "0 0 24 8", "aria-hidden": "true" }, make("line", { class: `line ${styleOf(series)}`, x1: 0, y1: 4, x2: 24, y2: 4 }));

  const column = (name, series, key) => (key ? data.tables[name][key].slice(series.start, series.stop) : []);
  const visible = (panel, now) => panel.series.filter((series) => series.model === null || now.models.has(series.model));
  const panelsOf = (name, now) => data.panels[name].filter((panel) => !panel.metric || panel.metric === now.metric);
  const shownPanels = (name, now) => panelsOf(name, now).filter((panel) => panel.of === undefined || now.models.has(panel.of)); // a panel of one model goes with it

  // One scale for all panels of a chart that show the same, so that they can be compared by eye.
  const domains = (name, now, ylabel) => {
    const xs = [], ys = [], panels = shownPanels(name, now);
    for (const panel of panels) {
      for (const mark of panel.marks || []) xs.push(mark.x);
      for (const series of visible(panel, now)) {
        xs.push(...extent(column(name, series, panel.x)));
        if (panel.ylabel !== ylabel) continue;
        ys.push(...extent(column(name, series, series.y || panel.y)));
        if (now.bands && panel.lower) ys.push(...extent(column(name, series, panel.lower)), ...extent(column(name, series, panel.upper)));
      }
    }
    const { xdomain, ydomain, zero } = panels[0] || {};
    const differ = (low, high) => high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)); // by more than rounding
    const spread = ([low, high]) => (differ(low, high) ? [low, high] : Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1]);
    const [least, most] = extent(zero ? [0, ...ys] : ys);
    const y = ydomain || (zero && least === most ? [0, 1] : spread([least, most]));
    const pad = ydomain ? 0 : 0.04 * (y[1] - y[0]);
    return { x: xdomain || spread(extent(xs)), y: [y[0] < 0 ? y[0] - pad : y[0], y[1] + pad] };
  };

  // Runs of points that are known, so that gaps stay gaps.
  const runs = (known) => {
    const found = [];
    known.forEach((is, k) => {
      if (is && (k === 0 || !known[k - 1])) found.push([]);
      if (is) found[found.length - 1].push(k);
    });
    return found;
  };
  const at = (x, y) => `${x.toFixed(2)},${y.toFixed(2)}`;
  const linePath = (run, x, y, step) => `M${run.map((k, j) => (step && j ? `${at(x[k], y[run[j - 1]])}L` : "") + at(x[k], y[k])).join("L")}`;
  const bandPath = (run, x, lower, upper) => `M${run.map((k) => at(x[k], upper[k])).join("L")}L${[...run].reverse().map((k) => at(x[k], lower[k])).join("L")}Z`;

  const drawAxes = (svg, panel, { px, py, inner, width, height, domain }) => {
    for (const tick of nice(...domain.y, 5)) {
      svg.append(make("line", { class: "axis", x1: inner.left, x2: inner.right, y1: py(tick), y2: py(tick) }));
      svg.append(make("text", { x: inner.left - 6, y: py(tick) + 4, "text-anchor": "end" }, show(tick)));
    }
    const wanted = width < 400 ? 4 : 6, names = panel.xnames; // places with names are whole numbers
    for (const tick of nice(...domain.x, names ? Math.min(wanted, names.length) : wanted).filter((place) => !names || names[place])) {
      svg.append(make("line", { class: "axis", x1: px(tick), x2: px(tick), y1: inner.bottom, y2: inner.bottom + 4 }));
      svg.append(make("text", { x: px(tick), y: inner.bottom + 17, "text-anchor": "middle" }, names ? names[tick] : show(tick)));
    }
    svg.append(make("text", { x: (inner.left + inner.right) / 2, y: height - 6, "text-anchor": "middle" }, panel.xlabel));
    svg.append(make("text", { transform: `translate(13 ${(inner.top + inner.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, panel.ylabel));
    if (panel.diagonal) svg.append(make("line", { class: "zero", x1: px(0), y1: py(0), x2: px(1), y2: py(1) }));
    else if (domain.y[0] < 0) svg.append(make("line", { class: "zero", x1: inner.left, x2: inner.right, y1: py(0), y2: py(0) }));
  };

  const drawLine = (svg, line, { px, py }, bands) => {
    const x = line.x.map(px), place = (values) => values.map((value) => (value === null ? null : py(value)));
    const y = place(line.y), lower = place(line.lower), upper = place(line.upper), style = styleOf(line.series);
    if (bands && line.lower.length) {
      for (const run of runs(lower.map((low, k) => low !== null && upper[k] !== null))) {
        if (run.length > 1) svg.append(make("path", { class: `band fill ${style}`, d: bandPath(run, x, lower, upper) }));
        else svg.append(make("line", { class: `whisker line ${style}`, x1: x[run[0]], x2: x[run[0]], y1: lower[run[0]], y2: upper[run[0]] }));
      }
    }
    const known = runs(y.map((value) => value !== null));
    svg.append(make("path", { class: `line ${style}`, d: known.map((run) => linePath(run, x, y, line.series.step)).join("") }));
    for (const run of known) {
      if (run.length === 1) svg.append(make("circle", { class: `dot fill ${style}`, cx: x[run[0]], cy: y[run[0]], r: 4 }));
    }
  };

  const drawMarks = (svg, marks, { px, inner }) => {
    for (const mark of marks) {
      const end = px(mark.x) > (inner.left + inner.right) / 2;
      svg.append(make("line", { class: `mark ${mark.kind || ""}`, x1: px(mark.x), x2: px(mark.x), y1: inner.top, y2: inner.bottom }));
      svg.append(make("text", { x: px(mark.x) + (end ? -4 : 4), y: inner.top + (mark.kind ? 24 : 10), "text-anchor": end ? "end" : "start" }, mark.label));
    }
  };

  // A panel: a figure whose plot is read by pointer, finger or arrow keys, as a slider over its points.
  const drawPanel = (name, panel, now, domain, figure) => {
    if (!figure.firstChild) figure.append(make("figcaption"), makePlot());
    const [caption, plot] = figure.children;
    caption.textContent = panel.title;
    const width = Math.max(240, plot.clientWidth || 360), height = panel.diagonal ? Math.min(width, 360) : 270;
    const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    const px = (value) => inner.left + ((value - domain.x[0]) / (domain.x[1] - domain.x[0])) * (inner.right - inner.left);
    const py = (value) => inner.bottom - ((value - domain.y[0]) / (domain.y[1] - domain.y[0])) * (inner.bottom - inner.top);
    const scale = { px, py, inner, width, height, domain };
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const lines = visible(panel, now).map((series) => ({
      series,
      x: column(name, series, panel.x),
      y: column(name, series, series.y || panel.y),
      lower: column(name, series, panel.lower),
      upper: column(name, series, panel.upper),
    }));
    drawAxes(svg, panel, scale);
    for (const line of lines) drawLine(svg, line, scale, now.bands);
    drawMarks(svg, panel.marks || [], scale);
    const cursor = make("g");
    svg.append(cursor);
    plot.querySelector("svg")?.remove();
    plot.prepend(svg);
    plot.reader = makeReader(plot, panel, lines, scale, cursor);
  };

  const nearest = (values, wanted) => values.reduce((best, value, k) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? k : best), 0);

  // Reads a plot's values out, at one of its points; it stays at the same place when the plot is drawn anew.
  const makeReader = (plot, panel, lines, { px, py, inner, width, domain }, cursor) => {
    const grid = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const tip = plot.querySelector(".tip");
    const slack = 0.01 * (domain.x[1] - domain.x[0]);
    const entries = (wanted) => lines.filter((line) => line.x.length && line.x[0] - slack <= wanted && wanted <= line.x[line.x.length - 1] + slack).map((line) => {
      const k = nearest(line.x, wanted);
      const limits = line.lower.length && line.lower[k] !== null ? `${show(line.lower[k])} to ${show(line.upper[k])}` : "";
      if (panel.diagonal) return { line, k, short: `${show(line.x[k])} predicted, ${show(line.y[k])} observed`, more: limits && `; ${limits} if right` };
      return { line, k, short: show(line.y[k]), more: limits && ` (${limits})` };
    });
    const x = plot.reader?.x;
    const reader = { x, index: grid.length && x !== undefined ? nearest(grid, x) : 0, last: grid.length - 1 };
    reader.clear = () => { tip.hidden = true; cursor.replaceChildren(); };
    reader.read = (position, visibly) => {
      plot.setAttribute("aria-valuenow", 0);
      plot.setAttribute("aria-valuetext", "nothing is shown");
      if (!grid.length) return;
      reader.index = Math.min(grid.length - 1, Math.max(0, position));
      reader.x = grid[reader.index];
      const found = entries(reader.x), heading = `${panel.xlabel} ${show(reader.x)}${panel.xnames ? `, ${panel.xnames[reader.x]}` : ""}`;
      plot.setAttribute("aria-valuenow", reader.index);
      plot.setAttribute("aria-valuetext", `${heading}: ${found.map(({ line, short, more }) => `${line.series.label} ${short}${more}`).join("; ")}`);
      if (!visibly) return;
      const left = px(reader.x), room = found.length > 8 ? () => "" : (more) => more; // many lines leave intervals to the table
      cursor.replaceChildren(make("line", { class: "cursor", x1: left, x2: left, y1: inner.top, y2: inner.bottom }));
      tip.replaceChildren(make("strong", {}, heading));
      for (const { line, k, short, more } of found) {
        if (line.y[k] !== null) cursor.append(make("circle", { class: `dot fill ${styleOf(line.series)}`, cx: px(line.x[k]), cy: py(line.y[k]), r: 4 }));
        tip.append(make("div", {}, swatch(line.series), make("span", { class: "name" }, line.series.label), make("span", {}, short + room(more))));
      }
      tip.hidden = false;
      const ratio = plot.clientWidth / width, rightmost = plot.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(rightmost, left * ratio + 12))}px`;
      tip.style.top = `${inner.top * ratio + 8}px`;
    };
    reader.point = (event) => {
      if (!grid.length) return;
      const box = plot.getBoundingClientRect();
      const x = (event.clientX - box.left) * (width / box.width);
      reader.read(nearest(grid, domain.x[0] + ((x - inner.left) / (inner.right - inner.left)) * (domain.x[1] - domain.x[0])), true);
    };
    plot.setAttribute("aria-label", `${panel.title}: ${panel.ylabel} by ${panel.xlabel}. Arrow keys read single values.`);
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", Math.max(0, grid.length - 1));
    reader.clear();
    reader.read(reader.index, false);
    return reader;
  };

  const makePlot = () => {
    const plot = make("div", { class: "plot", role: "slider", tabindex: "0", "aria-orientation": "horizontal" }, make("div", { class: "tip", hidden: "" }));
    const moves = (index, last) => {
      const page = Math.max(1, Math.round(last / 10));
      return { ArrowRight: index + 1, ArrowUp: index + 1, ArrowLeft: index - 1, ArrowDown: index - 1, PageUp: index + page, PageDown: index - page, Home: 0, End: last };
    };
    for (const kind of ["pointerdown", "pointermove"]) plot.addEventListener(kind, (event) => plot.reader.point(event));
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") plot.reader.clear(); });
    plot.addEventListener("blur", () => plot.reader.clear());
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) plot.reader.read(plot.reader.index, true); });
    plot.addEventListener("keydown", (event) => {
      const to = moves(plot.reader.index, plot.reader.last)[event.key];
      if (to === undefined) return;
      event.preventDefault();
      plot.reader.read(to, true);
    });
    return plot;
  };

  // A forest: a row for each segment, in it every model's difference with its interval; below, everybody's as diamonds.
  const MOST_ROWS = 40;
  const drawForest = (name, panel, now, _, figure) => {
    if (!figure.firstChild) figure.append(make("figcaption"), make("div", { class: "forest", role: "img" }));
    const [caption, plot] = figure.children;
    const lines = visible(panel, now).map((series) => {
      const get = (key) => column(name, series, key);
      return { series, labels: panel.by.map(get), y: get("difference"), lower: get("lower"), upper: get("upper"), n: get("n"), events: get("n_events") };
    });
    const known = (line, k) => line.lower[k] !== null && line.upper[k] !== null;
    let rows = lines.length ? lines[0].y.map((_, k) => k).slice(1) : [];
    const all = rows.length, size = (k) => Math.max(...lines.map((line) => (known(line, k) ? Math.abs(line.y[k]) : -1)));
    if (all > MOST_ROWS) rows = rows.sort((a, b) => size(b) - size(a)).slice(0, MOST_ROWS).sort((a, b) => a - b);
    caption.textContent = panel.title + (all > rows.length ? ` (the ${rows.length} of ${all} segments with the largest differences)` : "");
    plot.setAttribute("aria-label", `${panel.title}: ${panel.xlabel}, by segment, with intervals. The table below has all numbers.`);
    const width = Math.max(300, plot.clientWidth || 360), left = Math.min(170, 0.3 * width), right = width - 104;
    const high = 12 * Math.max(1, lines.length) + 6, bottom = 26 + high * (rows.length + 1) + 6, height = bottom + 40;
    const values = lines.flatMap((line) => [0, ...rows].flatMap((k) => (now.bands && known(line, k) ? [line.lower[k], line.y[k], line.upper[k]] : [line.y[k]])));
    const [least, most] = extent([0, ...values]), pad = 0.05 * (most - least) || 0.5;
    const px = (value) => left + ((value - least + pad) / (most - least + 2 * pad)) * (right - left);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    const write = (x, y, text, anchor = "start") => svg.append(make("text", { x, y, "text-anchor": anchor }, text));
    const room = Math.max(3, Math.floor(left / 6.6 / panel.by.length - 1)); // characters of each label
    const cut = (text) => ([...text].length > room + 1 ? `${[...text].slice(0, room).join("")}…` : text || "''");
    for (const tick of nice(least - pad, most + pad, right - left < 260 ? 3 : 5)) {
      svg.append(make("line", { class: "axis", x1: px(tick), x2: px(tick), y1: 22, y2: bottom + 4 }));
      write(px(tick), bottom + 17, show(tick), "middle");
    }
    svg.append(make("line", { class: "zero", x1: px(0), x2: px(0), y1: 22, y2: bottom }));
    svg.append(make("line", { class: "axis", x1: 0, x2: width, y1: bottom - high - 3, y2: bottom - high - 3 }));
    write(left, 12, `← ${panel.sides[0]}`);
    write(right, 12, `${panel.sides[1]} →`, "end");
    write(right + 50, 12, "n", "end");
    write(width, 12, "events", "end");
    write((left + right) / 2, height - 6, panel.xlabel, "middle");
    [...rows, 0].forEach((k, place) => {
      const top = 26 + high * place + (k ? 0 : 6), middle = top + high / 2;
      if (!lines.length) return;
      write(0, middle + 4, k ? lines[0].labels.map((some) => cut(some[k])).join(", ") : "all");
      write(right + 50, middle + 4, show(lines[0].n[k]), "end");
      write(width, middle + 4, show(lines[0].events[k]), "end");
      lines.forEach((line, j) => {
        if (line.y[k] === null) return;
        const y = top + 9 + 12 * j, style = styleOf(line.series), x = px(line.y[k]);
        const drawn = now.bands && known(line, k), [low, up] = drawn ? [px(line.lower[k]), px(line.upper[k])] : [x, x];
        if (k && drawn) svg.append(make("line", { class: `whisker solid line ${style}`, x1: low, x2: up, y1: y, y2: y }));
        if (k) svg.append(make("circle", { class: known(line, k) ? `dot fill ${style}` : `hollow line ${style}`, cx: x, cy: y, r: known(line, k) ? 4 : 3 }));
        else svg.append(make("path", { class: `fill ${style}`, d: `M${at(Math.min(low, x - 4), y)}L${at(x, y - 5)}L${at(Math.max(up, x + 4), y)}L${at(x, y + 5)}Z` }));
      });
    });
    plot.replaceChildren(svg);
  };

  const drawChart = (chart, now) => {
    const name = chart.dataset.chart, panels = shownPanels(name, now);
    const scales = new Map([...new Set(panels.map((panel) => panel.ylabel))].map((ylabel) => [ylabel, domains(name, now, ylabel)]));
    const holder = chart.querySelector(".panels");
    while (holder.children.length > panels.length) holder.lastChild.remove();
    while (holder.children.length < panels.length) holder.append(make("figure", { class: "panel" }));
    panels.forEach((panel, k) => (panel.forest ? drawForest : drawPanel)(name, panel, now, scales.get(panel.ylabel), holder.children[k]));
    drawLegend(chart.querySelector(".legend"), panelsOf(name, now), now);
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
    document.querySelectorAll("[data-metric]").forEach((part) => { part.hidden = part.dataset.metric !== now.metric; });
    document.querySelectorAll("tr[data-model-row]").forEach((row) => {
      const model = Number(row.dataset.modelRow);
      row.hidden = model >= 0 && !now.models.has(model);
    });
    document.querySelectorAll(".chart").forEach((chart) => drawChart(chart, now));
  };

  // Tables: long ones are made when they are opened; files hold all digits.
  const fill = (place) => {
    if (place.firstChild) return;
    const table = data.tables[place.dataset.fill], names = Object.keys(table);
    const numeric = new Set(names.filter((name) => typeof table[name].find((value) => value !== null) === "number"));
    const side = (name) => (numeric.has(name) ? { class: "n" } : {});
    const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col", ...side(name) }, name.replaceAll("_", " "))));
    const body = make("tbody", {}, ...table[names[0]].map((_, k) => make("tr", {}, ...names.map((name) => make("td", side(name), show(table[name][k]))))));
    place.append(make("table", {}, make("caption", {}, place.dataset.caption), make("thead", {}, head), body));
  };
  // What a spreadsheet would take for a formula, also full-width signs, and after blanks; the same as _spreadsheets.py.
  const formula = /^(?:[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r])/;
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
  const csv = (table) => {
    const names = Object.keys(table);
    const quote = (value) => {
      const text = value === null ? "" : typeof value === "string" && formula.test(value) && !number.test(value) ? `'${value}` : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const rows = table[names[0]].map((_, k) => names.map((name) => quote(table[name][k])).join(","));
    return "\ufeff" + [names.map(quote).join(","), ...rows].join("\n") + "\n"; // the mark tells spreadsheets that it is UTF-8
  };
  document.querySelectorAll("details.numbers").forEach((details) => {
    details.addEventListener("toggle", () => { if (details.open) details.querySelectorAll("[data-fill]").forEach(fill); });
  });
  document.querySelectorAll("button.download").forEach((button) => {
    button.addEventListener("click", () => {
      const address = URL.createObjectURL(new Blob([csv(data.tables[button.dataset.table])], { type: "text/csv" }));
      make("a", { href: address, download: `${button.dataset.table}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    });
  });

  const theme = document.getElementById("theme"), night = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : night.matches);
  const tellTheme = () => theme.setAttribute("aria-pressed", dark());
  night.addEventListener("change", tellTheme);
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    tellTheme();
  });

  // In a notebook's frame, an address with # would load the notebook itself.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link || location.href.split("#")[0] !== "about:srcdoc") return;
    event.preventDefault();
    const target = document.getElementById(link.getAttribute("href").slice(1));
    target.tabIndex = -1;
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  });
  const closeOthers = (kept) => document.querySelectorAll(".plot").forEach((plot) => { if (plot !== kept) plot.reader.clear(); });
  document.addEventListener("pointerdown", (event) => closeOthers(event.target.closest?.(".plot")));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeOthers(null); });

  form.addEventListener("change", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0, width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone's address bar comes and goes
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 100);
  });
  document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = false; });
  const bar = new ResizeObserver(() => { root.style.scrollPaddingTop = getComputedStyle(form).position === "sticky" ? `${form.offsetHeight + 8}px` : "8px"; });
  bar.observe(form);
  tellTheme();
  addEventListener("pageshow", (event) => { if (event.persisted) draw(); });
  draw();
})();
