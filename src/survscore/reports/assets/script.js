"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-json").textContent);
  const form = document.querySelector("form.controls");
  const root = document.documentElement;
  const SVG = "http://www.w3.org/2000/svg";

  // Columns of repeated values come as codes.
  for (const table of Object.values(data.tables)) {
    for (const [name, column] of Object.entries(table)) {
      if (!Array.isArray(column)) table[name] = column.codes.map((code) => column.values[code]);
    }
  }

  // What a person has chosen.
  const state = () => ({
    metric: form.querySelector("input[name=metric]:checked")?.value ?? data.metrics[0],
    cause: form.querySelector("input[name=cause]:checked")?.value,
    bands: form.querySelector("input[name=bands]").checked,
    models: new Set([...form.querySelectorAll("input[name=model]:checked")].map((box) => Number(box.value))),
  });

  // Small helpers: elements, numbers, scales.
  const make = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "path", "text", "circle", "rect", "title"].includes(name);
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
  // As many decimals in all of a column: four digits of the largest number; the same as cells.py.
  const decimals = (values) => {
    const sizes = values.filter((value) => typeof value === "number" && value !== 0).map(Math.abs);
    if (!sizes.length || sizes.every(Number.isInteger)) return 0;
    return Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(Math.max(...extent(sizes))))));
  };
  const even = (value, digits) => {
    if (typeof value !== "number") return show(value);
    if (value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits) return show(Number(value.toPrecision(2)));
    const [whole, rest] = Math.abs(value).toFixed(digits).split(".");
    return `${value < 0 ? "−" : ""}${whole.replace(/\B(?=(?:\d{3})+$)/g, ",")}${rest ? `.${rest}` : ""}`;
  };
  const signed = (value, digits) => (value > 0 ? "+" : "") + even(value, digits);
  const nice = (low, high, wanted) => {
    const power = 10 ** Math.floor(Math.log10((high - low) / wanted || 1));
    const off = (step) => Math.abs(Math.log((high - low) / step / wanted));
    const steps = power === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]; // whole numbers stay whole
    const step = steps.map((k) => k * power).reduce((best, one) => (off(one) < off(best) ? one : best));
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  };
  // Ticks with as many decimals; none runs into the next.
  const labelled = (ticks) => {
    const places = Math.max(0, ...ticks.map((tick) => (String(tick).includes("e") ? 9 : (String(tick).split(".")[1] || "").length)));
    return ticks.map((tick) => [tick, places > 8 ? show(tick) : even(tick, places)]);
  };
  // As many ticks as there is room for: their texts stand apart.
  const spaced = (low, high, px) => {
    for (let wanted = 7; ; wanted -= 1) {
      const ticks = labelled(nice(low, high, wanted));
      const apart = ticks.length < 2 ? Infinity : px(ticks[1][0]) - px(ticks[0][0]);
      if (wanted === 1 || ticks.every(([, text]) => widthOf(text, true) + 12 <= apart)) return ticks;
    }
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
  // How wide a text is in a chart, and what of it fits.
  const family = getComputedStyle(document.body).fontFamily;
  const pens = [400, 600].map((weight) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${weight} 12px ${family}`;
    return pen;
  });
  const widthOf = (text, bold) => pens[bold ? 1 : 0].measureText(text).width;
  const cut = (text, room, bold) => {
    if (widthOf(text, bold) <= room) return text;
    const letters = [...text];
    while (letters.length > 1 && widthOf(`${letters.join("")}…`, bold) > room) letters.pop();
    return `${letters.join("")}…`;
  };
  const write = (svg, x, y, text, attributes = {}, room = Infinity) => {
    const shown = cut(text, room, /strong|name|side/.test(attributes.class));
    const element = make("text", { x, y, ...attributes }, shown);
    const full = attributes["data-name"] ?? text;
    if (shown !== full) element.append(make("title", {}, full));
    svg.append(element);
  };

  // A line's looks: eight colours, and dashes that differ where colours come again. One curve for all is grey and dotted.
  // What is no model has no model's colour.
  const colourOf = (series) => (series.null ? "null" : series.neutral !== undefined ? `n${series.neutral % 4}` : `s${(series.model ?? series.style) % 8}`);
  const styleOf = (series) => {
    const k = series.model ?? series.style;
    return series.null || series.neutral !== undefined ? colourOf(series) : `${colourOf(series)} d${(k + Math.floor(k / 8)) % 8}`;
  };
  const swatch = (series) => make("svg", { class: "swatch", viewBox: "0 0 24 8", "aria-hidden": "true" }, make("line", { class: `line ${styleOf(series)}`, x1: 0, y1: 4, x2: 24, y2: 4 }));

  const column = (name, series, key) => (key ? data.tables[name][key].slice(series.start, series.stop) : []);
  const visible = (panel, now) => (panel.series || []).filter((series) => series.model === null || now.models.has(series.model));
  const panelsOf = (name, now) => data.panels[name].filter((panel) => !panel.metric || panel.metric === now.metric);
  const shownPanels = (name, now) => panelsOf(name, now).filter((panel) => panel.of === undefined || now.models.has(panel.of)); // a panel of one model goes with it

  // One scale for all panels of a chart that show the same, so that they can be compared by eye.
  const domains = (name, now, ylabel) => {
    const xs = [], ys = [], panels = shownPanels(name, now).filter((panel) => panel.series);
    for (const panel of panels) {
      for (const mark of panel.marks || []) xs.push(mark.x);
      for (const series of visible(panel, now)) {
        xs.push(...extent(column(name, series, panel.x)));
        if (panel.ylabel !== ylabel) continue;
        ys.push(...extent(column(name, series, series.y || panel.y)));
        if (now.bands && panel.lower) ys.push(...extent(column(name, series, panel.lower)), ...extent(column(name, series, panel.upper)));
      }
    }
    const { domain, ydomain, zero } = panels[0] || {};
    const differ = (low, high) => high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)); // by more than rounding
    const spread = ([low, high]) => (differ(low, high) ? [low, high] : Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1]);
    const [least, most] = extent(zero ? [0, ...ys] : ys);
    const y = domain || ydomain || (zero && least === most ? [0, 1] : spread([least, most]));
    const pad = domain || ydomain ? 0 : 0.04 * (y[1] - y[0]);
    return { x: domain || spread(extent(xs)), y: [y[0] < 0 ? y[0] - pad : y[0], y[1] + pad] };
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

  const drawAxes = (svg, panel, { px, py, inner, width, height, domain, yticks }) => {
    for (const [tick, text] of yticks) {
      svg.append(make("line", { class: "axis", x1: inner.left, x2: inner.right, y1: py(tick), y2: py(tick) }));
      write(svg, inner.left - 6, py(tick) + 4, text, { "text-anchor": "end" });
    }
    const wanted = Math.max(2, Math.min(8, Math.round((inner.right - inner.left) / (panel.xnames ? 110 : 70)))), names = panel.xnames; // places with names are whole numbers
    for (const [tick, text] of labelled(nice(...domain.x, names ? Math.min(wanted, names.length) : wanted).filter((place) => !names || names[place]))) {
      const x = px(tick), label = names ? names[tick] : text, half = widthOf(label) / 2;
      svg.append(make("line", { class: "axis", x1: x, x2: x, y1: inner.bottom, y2: inner.bottom + 4 }));
      write(svg, Math.max(half, Math.min(width - half, x)), inner.bottom + 17, label, { "text-anchor": "middle" });
    }
    const wide = Math.min(width, widthOf(panel.xlabel)) / 2;
    write(svg, Math.min(width - wide, Math.max((inner.left + inner.right) / 2, wide)), height - 6, panel.xlabel, { "text-anchor": "middle" }, width);
    write(svg, 0, 11, panel.ylabel, {}, width); // lies above its axis, where it can be read
    if (panel.diagonal) svg.append(make("line", { class: "zero", x1: px(domain.x[0]), y1: py(domain.y[0]), x2: px(domain.x[1]), y2: py(domain.y[1]) }));
    else if (domain.y[0] < 0) svg.append(make("line", { class: "zero", x1: inner.left, x2: inner.right, y1: py(0), y2: py(0) }));
    if (panel.sides && domain.y[0] < 0 && domain.y[1] > 0) {
      const [below, above] = panel.sides;
      if (py(0) - inner.top > 18) write(svg, inner.left + 5, inner.top + 12, `↑ ${above}`, { class: `side ${above}` });
      if (inner.bottom - py(0) > 18) write(svg, inner.left + 5, inner.bottom - 5, `↓ ${below}`, { class: `side ${below}` });
    }
  };

  const drawLine = (svg, line, { px, py }, bands) => {
    const x = line.x.map(px), place = (values) => values.map((value) => (value === null ? null : py(value)));
    const y = place(line.y), lower = place(line.lower), upper = place(line.upper), style = styleOf(line.series);
    if ((bands || line.series.stacked) && line.lower.length) {
      for (const run of runs(lower.map((low, k) => low !== null && upper[k] !== null))) {
        if (run.length > 1) svg.append(make("path", { class: `${line.series.stacked ? "stack" : "band"} fill ${style}`, d: bandPath(run, x, lower, upper) }));
        else svg.append(make("line", { class: `whisker line ${style}`, x1: x[run[0]], x2: x[run[0]], y1: lower[run[0]], y2: upper[run[0]] }));
      }
    }
    const known = runs(y.map((value) => value !== null));
    svg.append(make("path", { class: `line ${style}`, d: known.map((run) => linePath(run, x, y, line.series.step)).join("") }));
    for (const run of known) {
      if (run.length === 1) svg.append(make("circle", { class: `dot fill ${style}`, cx: x[run[0]], cy: y[run[0]], r: 4 }));
    }
  };

  // Names at the ends of lines, moved apart where ends are close, and tied to their line if they had to move.
  const drawNames = (svg, lines, { px, py, inner, width }) => {
    const ends = lines.map((line) => ({ line, k: line.y.findLastIndex((value) => value !== null) })).filter(({ k }) => k >= 0)
      .map(({ line, k }) => ({ line, x: px(line.x[k]), y: py(line.y[k]) })).sort((a, b) => a.y - b.y);
    const gap = 15, most = inner.bottom - 2;
    ends.forEach((end, k) => { end.at = Math.max(end.y, k ? ends[k - 1].at + gap : inner.top + 6); });
    for (let k = ends.length - 1, limit = most; k >= 0; k -= 1, limit -= gap) ends[k].at = Math.min(ends[k].at, limit);
    for (const { line, x, y, at: place } of ends) {
      const start = inner.right + 14;
      if (Math.abs(place - y) > 4 || x < inner.right - 2) svg.append(make("path", { class: `tie line ${colourOf(line.series)}`, d: `M${at(x + 2, y)}L${at(inner.right + 3, y)}L${at(start - 3, place)}` }));
      write(svg, start, place + 4, line.series.label, { class: `name ink ${colourOf(line.series)}` }, width - start);
    }
  };

  const drawMarks = (svg, marks, { px, inner }) => {
    for (const mark of marks) {
      const end = px(mark.x) > (inner.left + inner.right) / 2;
      svg.append(make("line", { class: `mark ${mark.kind || ""}`, x1: px(mark.x), x2: px(mark.x), y1: inner.top, y2: inner.bottom }));
      write(svg, px(mark.x) + (end ? -4 : 4), inner.top + (mark.kind ? 26 : 11), mark.label, { class: "strong", "text-anchor": end ? "end" : "start" });
    }
  };

  // A caption, with the full name of what has a short one.
  const caption = (element, panel, more = "") => {
    const title = panel.full ? make("span", { class: "brief", tabindex: "0", "data-full": panel.full }, panel.title, make("span", { class: "sr" }, `, in full ${panel.full}`)) : document.createTextNode(panel.title);
    element.replaceChildren(title, ...(more ? [make("span", { class: "more" }, ` ${more}`)] : []));
  };

  // A panel: a figure whose plot is read by pointer, finger or arrow keys, as a slider over its points.
  const named = (panel, width) => panel.main && width >= 560 && panel.series.length <= 12;
  const drawPanel = (name, panel, now, domain, figure, { room, tall }) => {
    const [title, plot] = figure.children;
    caption(title, panel);
    const lines = visible(panel, now).map((series) => ({
      series,
      x: column(name, series, panel.x),
      y: column(name, series, series.y || panel.y),
      lower: column(name, series, panel.lower),
      upper: column(name, series, panel.upper),
      own: column(name, series, series.stacked), // of what lies upon others
    }));
    const width = Math.max(240, room);
    const height = panel.diagonal ? Math.min(width, 380) : panel.main || tall ? 340 : 200;
    const yticks = labelled(nice(...domain.y, height < 240 ? 4 : 5));
    const left = 8 + Math.max(...yticks.map(([, text]) => widthOf(text)));
    const names = named(panel, width) ? 20 + Math.min(0.25 * width, Math.max(0, ...lines.map((line) => widthOf(line.series.label, true)))) : 14;
    const inner = { left, right: width - names, top: 24, bottom: height - 44 };
    const px = (value) => inner.left + ((value - domain.x[0]) / (domain.x[1] - domain.x[0])) * (inner.right - inner.left);
    const py = (value) => inner.bottom - ((value - domain.y[0]) / (domain.y[1] - domain.y[0])) * (inner.bottom - inner.top);
    const scale = { px, py, inner, width, height, domain, yticks };
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    drawAxes(svg, panel, scale);
    for (const line of lines) drawLine(svg, line, scale, now.bands);
    drawMarks(svg, panel.marks || [], scale);
    if (named(panel, width)) drawNames(svg, lines, scale);
    const cursor = make("g");
    svg.append(cursor);
    plot.querySelector("svg")?.remove();
    plot.prepend(svg);
    plot.reader = makeReader(plot, panel, lines, scale, cursor);
  };

  const nearest = (values, wanted) => values.reduce((best, value, k) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? k : best), 0);

  // A tip stands above what it describes, or below where there is more room, and never on it.
  const placeTip = (tip, around, left) => {
    tip.hidden = false;
    const box = around.getBoundingClientRect(), bar = getComputedStyle(form).position === "sticky" ? form.getBoundingClientRect().bottom : 0;
    const over = box.top - bar, under = innerHeight - box.bottom;
    const above = over >= tip.offsetHeight + 6 || over >= under;
    tip.style.top = `${above ? -tip.offsetHeight - 6 : around.offsetHeight + 6}px`;
    const most = root.clientWidth - 4 - tip.offsetWidth - box.left; // within the window, and the chart where it fits
    tip.style.left = `${Math.max(4 - box.left, Math.min(most, Math.max(0, Math.min(around.clientWidth - tip.offsetWidth, left - tip.offsetWidth / 2))))}px`;
  };

  // Reads a plot's values out, at one of its points; it stays at the same place when the plot is drawn anew.
  const makeReader = (plot, panel, lines, { px, py, inner, width, domain }, cursor) => {
    const grid = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    const tip = plot.querySelector(".tip");
    const slack = 0.01 * (domain.x[1] - domain.x[0]);
    const entries = (wanted, number) => lines.filter((line) => line.x.length && line.x[0] - slack <= wanted && wanted <= line.x[line.x.length - 1] + slack).map((line) => {
      const k = nearest(line.x, wanted);
      if (line.series.stacked) return { line, k, short: number(line.own[k]), more: "" };
      const limits = line.lower.length && line.lower[k] !== null ? ` (${number(line.lower[k])} to ${number(line.upper[k])})` : "";
      const short = panel.diagonal ? `${number(line.y[k])} observed` : number(line.y[k]);
      return { line, k, short, more: limits };
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
      const found = entries(reader.x, show), heading = `${panel.xlabel} ${show(reader.x)}${panel.xnames ? `, ${panel.xnames[reader.x]}` : ""}`;
      plot.setAttribute("aria-valuenow", reader.index);
      plot.setAttribute("aria-valuetext", `${heading}: ${found.map(({ line, short, more }) => `${line.series.label} ${short}${more}`).join("; ")}`);
      if (!visibly) return;
      const left = px(reader.x), room = found.length > 8 ? () => "" : (more) => more; // many lines leave intervals to the table
      cursor.replaceChildren(make("line", { class: "cursor", x1: left, x2: left, y1: inner.top, y2: inner.bottom }));
      tip.replaceChildren(make("strong", {}, heading));
      const digits = decimals(found.map(({ line, k }) => line.y[k]));
      for (const { line, k, short, more } of entries(reader.x, (value) => even(value, digits))) {
        if (line.y[k] !== null) cursor.append(make("circle", { class: `dot fill ${styleOf(line.series)}`, cx: px(line.x[k]), cy: py(line.y[k]), r: 4 }));
        tip.append(make("div", {}, swatch(line.series), make("span", { class: "name" }, line.series.label), make("span", {}, short + room(more))));
      }
      placeTip(tip, plot, left * (plot.clientWidth / width));
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

  // Rows: in each some estimates with their intervals, names on the left, numbers on the right, zero and both sides named.
  // Estimates beyond the scale are arrows at its end; their numbers stand beside them.
  const drawRows = (figure, room, panel, { rows, domain, heads = [], sides, xlabel, label, more }) => {
    const [title, plot] = figure.children;
    caption(title, panel, more);
    plot.setAttribute("aria-label", label);
    const width = Math.max(280, room);
    const cells = heads.map((head, c) => 12 + Math.max(widthOf(head), ...rows.map((row) => widthOf(row.cells?.[c] ?? ""))));
    const right = width - cells.reduce((sum, cell) => sum + cell, 0);
    const left = Math.min(0.42 * right, 12 + Math.max(0, ...rows.map((row) => (row.indent || 0) + widthOf(row.label, row.class?.includes("strong")))));
    const top = sides || heads.length ? 24 : 6, bottom = top + rows.reduce((sum, row) => sum + row.height, 0) + 4, height = bottom + 40;
    // a side on which nothing lies is still seen
    const span = domain[1] - domain[0] || 1;
    const least = Math.min(domain[0] - 0.04 * span, sides ? -0.14 * span : Infinity), most = Math.max(domain[1] + 0.04 * span, sides ? 0.14 * span : -Infinity);
    const scaled = (value) => left + ((value - least) / (most - least)) * (right - left);
    const px = (value) => Math.max(left, Math.min(right, scaled(value)));
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", focusable: "false" });
    if (sides) {
      for (const [side, from, to] of [[sides[0], left, px(0)], [sides[1], px(0), right]]) {
        svg.append(make("rect", { class: `tint ${side}`, x: from, y: top - 2, width: Math.max(0, to - from), height: bottom - top + 4 }));
      }
      write(svg, left, 13, `← ${sides[0]}`, { class: `side ${sides[0]}` }, (right - left) / 2);
      write(svg, right, 13, `${sides[1]} →`, { class: `side ${sides[1]}`, "text-anchor": "end" }, (right - left) / 2);
    }
    for (const [tick, text] of spaced(least, most, px)) {
      const side = widthOf(text, true) / 2;
      svg.append(make("line", { class: tick === 0 ? "nought" : "axis", x1: px(tick), x2: px(tick), y1: top - 2, y2: bottom + 4 }));
      write(svg, Math.max(side, Math.min(width - side, px(tick))), bottom + 17, text, { "text-anchor": "middle", class: tick === 0 ? "strong" : "" });
    }
    const half = Math.min(width, widthOf(xlabel)) / 2;
    write(svg, Math.min(width - half, Math.max((left + right) / 2, half)), height - 6, xlabel, { "text-anchor": "middle" }, width - 2);
    const columnEnd = (c) => right + cells.slice(0, c + 1).reduce((sum, cell) => sum + cell, 0);
    heads.forEach((head, c) => write(svg, columnEnd(c), 13, head, { "text-anchor": "end" }));
    let y = top;
    for (const row of rows) {
      const middle = y + row.height / 2;
      if (row.ruled) svg.append(make("line", { class: "axis", x1: 0, x2: width, y1: y, y2: y }));
      write(svg, row.indent || 0, middle + 4, row.label, { class: row.class || "", ...(row.full ? { "data-name": row.full } : {}) }, left - 6 - (row.indent || 0));
      (row.cells || []).forEach((cell, c) => write(svg, columnEnd(c), middle + 4, cell, { "text-anchor": "end", class: row.strong ? "strong" : "" }));
      for (const mark of row.marks || []) drawMark(svg, mark, middle + (mark.offset || 0), { px, scaled, left, right });
      y += row.height;
    }
    plot.replaceChildren(svg);
  };
  const drawMark = (svg, { x, low, up, style, shape = "dot", rings = [] }, y, { px, scaled, left, right }) => {
    const known = low !== null && low !== undefined && up !== null && up !== undefined;
    for (const ring of rings) svg.append(make("circle", { class: `ring line ${style}`, cx: px(ring), cy: y, r: 3 }));
    if (x === null) return;
    if (known && shape !== "diamond") svg.append(make("line", { class: `whisker solid line ${style}${shape === "hollow" ? " thin" : ""}`, x1: px(low), x2: px(up), y1: y, y2: y }));
    const arrow = (edge, way) => svg.append(make("path", { class: `fill ${style}`, d: `M${at(edge, y - 4)}L${at(edge + way * 7, y)}L${at(edge, y + 4)}Z` }));
    if (known && scaled(low) < left) arrow(left + 7, -1);
    if (known && scaled(up) > right) arrow(right - 7, 1);
    if (scaled(x) < left - 1 || scaled(x) > right + 1) return;
    if (shape === "diamond") {
      const [a, b] = known ? [px(low), px(up)] : [px(x), px(x)];
      svg.append(make("path", { class: `fill ${style}`, d: `M${at(Math.min(a, px(x) - 4), y)}L${at(px(x), y - 5)}L${at(Math.max(b, px(x) + 4), y)}L${at(px(x), y + 5)}Z` }));
    } else svg.append(make("circle", { class: shape === "dot" && known ? `dot fill ${style}` : `hollow line ${style}`, cx: px(x), cy: y, r: shape === "dot" ? 5 : 3.5 }));
  };
  const spreadOf = (values, around = [0]) => {
    const [least, most] = extent([...around, ...values]);
    return most > least ? [least, most] : [least - 0.5, least + 0.5];
  };

  // The answer: every model against the reference, the weighting that the answer goes by first, the others smaller below.
  // The scale is that of the first, so that intervals can be seen; what lies far beyond is an arrow.
  // Many rows become one for each model, with the other weightings as rings below.
  const FAR = 2.5, MANY = 12;
  const drawAnswer = (name, panel, now, _, figure, { room }) => {
    const table = data.tables[name.replace(/answer$/, "verdicts")], groups = panel.groups.filter((group) => now.models.has(group.model));
    const value = (key, row) => (key === "difference" || now.bands ? table[key][row.at] : null);
    const all = groups.flatMap((group) => group.rows), dense = all.length > MANY;
    const main = groups.flatMap((group) => group.rows.filter((row) => row.main && !group.null));
    const basis = main.length ? main : all.filter((row) => row.main);
    const ends = (some) => some.flatMap((row) => ["difference", "lower", "upper"].map((key) => value(key, row)));
    const near = spreadOf(ends(basis)), reach = FAR * Math.max(-near[0], near[1]);
    const domain = spreadOf(ends(all).filter((one) => one !== null && Math.abs(one) <= reach), near);
    const halves = basis.map((row) => (table.upper[row.at] - table.lower[row.at]) / 2).filter((half) => half > 0);
    const [fewest, most] = extent(halves.map((half) => 1 - Math.floor(Math.log10(half))));
    const digits = Math.max(4, Math.min(6, most, fewest + 1)); // one narrow interval does not rule all
    const markOf = (group, row, offset) => ({ x: value("difference", row), low: value("lower", row), up: value("upper", row), style: colourOf(group), shape: row.main ? "dot" : "hollow", offset });
    const cells = (row) => [signed(table.difference[row.at], digits)];
    const rows = groups.flatMap((group) => {
      const ink = `strong ink ${colourOf(group)}`, others = group.rows.length - 1;
      if (dense) return [{ label: group.label, class: ink, height: 20 + 9 * others, strong: true, cells: cells(group.rows[0]), marks: group.rows.map((row, k) => markOf(group, row, 9 * k - 4.5 * others)) }];
      return [
        { label: group.label, class: ink, height: 26 },
        ...group.rows.map((row) => ({ label: row.title, full: row.full, indent: 10, height: row.main ? 24 : 19, strong: row.main, cells: cells(row), marks: [markOf(group, row)] })),
      ];
    });
    const told = groups.flatMap((group) => group.rows.map((row) => `${group.label}, ${row.title}: ${show(table.difference[row.at])} (${show(table.lower[row.at])} to ${show(table.upper[row.at])}), ${table.verdict[row.at]}`));
    const beyond = all.some((row) => ["difference", "lower", "upper"].some((key) => { const one = value(key, row); return one !== null && (one < domain[0] || one > domain[1]); }));
    const [first, ...rest] = dense ? groups[0].rows.map((row) => row.title) : [];
    drawRows(figure, room, panel, {
      rows, domain, heads: ["difference"], sides: panel.sides, xlabel: panel.xlabel + (beyond ? "; arrows: beyond the scale" : ""), label: `${panel.title}. ${told.join("; ")}.`,
      more: dense ? `Filled: ${first}${rest.length ? `; below it ${rest.join(", ")}` : ""}` : "",
    });
  };

  // A backtest: for each weighting the mean regret with its interval, and a ring for each day.
  const drawBacktest = (name, panel, now, _, figure, { room }) => {
    const table = data.tables[`${name}-summary`], days = data.tables[`${name}-regrets`].relative_regret;
    const percent = (value) => (value === null ? null : 100 * value);
    const rows = panel.rows.map((row, k) => ({
      label: row.title, full: row.full, height: 30, cells: [`${even(percent(table.relative_regret[row.at]), 2)} %`], strong: true,
      marks: [{ x: percent(table.relative_regret[row.at]), low: now.bands ? percent(table.regret_lower[row.at]) : null, up: now.bands ? percent(table.regret_upper[row.at]) : null, style: `w${k % 4}`, rings: days.slice(row.start, row.stop).map(percent) }],
    }));
    const domain = spreadOf(rows.flatMap((row) => [row.marks[0].x, row.marks[0].low, row.marks[0].up, ...row.marks[0].rings]));
    const told = rows.map((row) => `${row.label} ${row.cells[0]}`);
    drawRows(figure, room, panel, { rows, domain, heads: ["mean"], xlabel: panel.xlabel, label: `${panel.title}: ${told.join("; ")}. The table below has all numbers.` });
  };

  // A forest: a row for each segment, in it every model's difference with its interval; below, those of all individuals as diamonds.
  const MOST_ROWS = 40;
  const drawForest = (name, panel, now, _, figure, { room }) => {
    const linesOf = (one) => visible(one, now).map((series) => {
      const get = (key) => column(name, series, key);
      return { series, labels: one.by.map(get), y: get("difference"), lower: get("lower"), upper: get("upper"), n: get("n"), events: get("n_events") };
    });
    const lines = linesOf(panel), known = (line, k) => line.lower[k] !== null && line.upper[k] !== null;
    let kept = lines.length ? lines[0].y.map((_, k) => k).slice(1) : [];
    const all = kept.length, size = (k) => Math.max(...lines.map((line) => (known(line, k) ? Math.abs(line.y[k]) : -1)));
    if (all > MOST_ROWS) kept = kept.sort((a, b) => size(b) - size(a)).slice(0, MOST_ROWS).sort((a, b) => a - b);
    const high = 12 * Math.max(1, lines.length) + 8;
    const rows = (lines.length ? [...kept, 0] : []).map((k) => ({
      label: k ? lines[0].labels.map((some) => some[k] || "''").join(", ") : "all",
      class: k ? "" : "strong", ruled: k === 0, height: high,
      cells: [even(lines[0].n[k], 0), even(lines[0].events[k], 0)],
      marks: lines.map((line, j) => ({
        x: line.y[k], low: now.bands ? line.lower[k] : null, up: now.bands ? line.upper[k] : null, offset: 12 * (j - (lines.length - 1) / 2),
        style: colourOf(line.series), shape: k === 0 ? "diamond" : known(line, k) ? "dot" : "hollow",
      })),
    }));
    // one scale for all weightings; of many segments that of those that are shown
    const drawn = all > MOST_ROWS ? lines : shownPanels(name, now).flatMap(linesOf);
    const domain = spreadOf(drawn.flatMap((line) => (all > MOST_ROWS ? [0, ...kept] : [...line.y.keys()]).flatMap((k) => (now.bands && known(line, k) ? [line.lower[k], line.y[k], line.upper[k]] : [line.y[k]]))));
    drawRows(figure, room, panel, {
      rows, domain, heads: ["n", "events"], sides: panel.sides, xlabel: panel.xlabel, more: all > kept.length ? `(the ${kept.length} of ${all} segments with the largest differences)` : "",
      label: `${panel.title}: ${panel.xlabel}, by segment, with intervals. The table below has all numbers.`,
    });
  };

  const KINDS = { answer: drawAnswer, backtest: drawBacktest, forest: drawForest };
  // Charts are drawn in three steps, each for all of them, so that the browser lays the page out once: what there is to
  // draw gets its place, then widths are read, then lines are drawn.
  const placed = (chart, now) => {
    const name = chart.dataset.chart, panels = shownPanels(name, now), holder = chart.querySelector(".panels");
    while (holder.children.length > panels.length) holder.lastChild.remove();
    while (holder.children.length < panels.length) holder.append(make("figure", { class: "panel" }));
    // one is large, the others small beside it; a single other one is as high
    const mixed = panels.some((panel) => panel.main && !panel.kind) && panels.length > 1;
    holder.classList.toggle("mixed", mixed);
    holder.classList.toggle("beside", mixed && panels.length <= 3);
    panels.forEach((panel, k) => {
      const figure = holder.children[k], wanted = panel.kind ? "rows" : "plot";
      figure.classList.toggle("main", Boolean((panel.main && panel.kind !== "forest") || panel.groups || panel.rows || panels.length === 1));
      if (figure.lastChild?.className !== wanted) figure.replaceChildren(make("figcaption"), panel.kind ? make("div", { class: "rows", role: "img" }) : makePlot());
    });
    return { chart, name, panels, holder, mixed };
  };
  const measured = (one) => ({ ...one, wide: one.holder.clientWidth, rooms: [...one.holder.children].map((figure) => figure.lastChild.clientWidth || 360) });
  const drawChart = ({ chart, name, panels, holder, mixed, wide, rooms }, now) => {
    const scales = new Map([...new Set(panels.map((panel) => panel.ylabel))].map((ylabel) => [ylabel, domains(name, now, ylabel)]));
    const tall = mixed && panels.length === 2 && wide >= 900;
    panels.forEach((panel, k) => (KINDS[panel.kind] || drawPanel)(name, panel, now, scales.get(panel.ylabel), holder.children[k], { room: rooms[k], tall }));
    const legend = chart.querySelector(".legend");
    legend.classList.toggle("spared", panels.some((panel, k) => panel.groups || panel.rows || (!panel.kind && named(panel, rooms[k]))));
    drawLegend(legend, panelsOf(name, now), now);
  };

  // A model's entry switches it on and off everywhere, like its box at the top of the page.
  const drawLegend = (legend, panels, now) => {
    const entries = new Map(panels.flatMap((panel) => panel.series || []).map((series) => [series.label, series]));
    const held = [...legend.children].findIndex((item) => item.contains(document.activeElement));
    legend.replaceChildren(...[...entries.values()].map((series) => {
      const shown = [swatch(series), make("span", {}, series.label)];
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

  const choose = (now) => {
    const paper = root.classList.contains("paper"); // which has all causes, one after the other
    document.querySelectorAll("[data-cause]").forEach((part) => { part.hidden = !paper && part.dataset.cause !== now.cause; });
    document.querySelectorAll("[data-metric]").forEach((part) => { part.hidden = part.dataset.metric !== now.metric; });
    document.querySelectorAll("tr[data-model-row]").forEach((row) => {
      const model = Number(row.dataset.modelRow);
      row.hidden = model >= 0 && !now.models.has(model);
    });
  };
  const draw = () => {
    const now = state();
    choose(now);
    drawCharts(charts(".chart"), now);
  };
  const charts = (selector) => [...document.querySelectorAll(selector)].filter((chart) => !chart.closest("[data-cause][hidden]"));
  const drawCharts = (some, now) => some.map((chart) => placed(chart, now)).map(measured).forEach((one) => drawChart(one, now));

  // Pictures: a chart as one SVG with its looks written into it, or as PNG of twice the size.
  const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "paint-order"];
  const picture = (chart) => {
    const box = chart.getBoundingClientRect(), pad = 12;
    const tools = chart.querySelector(".tools").getBoundingClientRect();
    const width = Math.ceil(box.width + 2 * pad), height = Math.ceil(tools.top - box.top + 2 * pad);
    const svg = make("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` });
    svg.append(make("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }));
    const styled = (from, to) => {
      const looks = getComputedStyle(from);
      for (const name of LOOKS) to.setAttribute(name, looks.getPropertyValue(name));
      [...from.children].forEach((child, k) => styled(child, to.children[k]));
    };
    const shownIn = (selector) => [...chart.querySelectorAll(selector)].filter((element) => element.getClientRects().length);
    for (const source of shownIn(".panels svg, .legend svg")) {
      const place = source.getBoundingClientRect(), copy = source.cloneNode(true);
      styled(source, copy);
      for (const [key, value] of Object.entries({ x: place.left - box.left + pad, y: place.top - box.top + pad, width: place.width, height: place.height })) copy.setAttribute(key, value);
      svg.append(copy);
    }
    for (const source of shownIn("figcaption, .legend li")) {
      const place = (source.querySelector("span:not(.brief)") && source.matches("li") ? source.querySelector("span") : source).getBoundingClientRect(), looks = getComputedStyle(source);
      const text = source.matches("li") ? source.textContent : [...source.childNodes].map((node) => (node.nodeType === 3 ? node.data : node.firstChild.data)).join("");
      svg.append(make("text", { x: place.left - box.left + pad, y: place.top - box.top + pad + 0.75 * place.height, fill: looks.color, "font-size": looks.fontSize, "font-weight": looks.fontWeight, "font-family": looks.fontFamily }, text));
    }
    return { text: new XMLSerializer().serializeToString(svg), width, height };
  };
  const save = (blob, name) => {
    const address = URL.createObjectURL(blob);
    make("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  document.querySelectorAll("button[data-picture]").forEach((button) => {
    button.addEventListener("click", () => {
      const chart = button.closest(".chart"), name = chart.dataset.chart, { text, width, height } = picture(chart);
      if (button.dataset.picture === "svg") {
        save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
        return;
      }
      const image = new Image();
      image.addEventListener("load", () => {
        const canvas = make("canvas", { width: 2 * width, height: 2 * height });
        canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
        canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
      });
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  });

  // Tables: long ones are made when they are opened; files hold all digits.
  const fill = (place) => {
    if (place.firstChild) return;
    const table = data.tables[place.dataset.fill], names = Object.keys(table);
    const numeric = new Set(names.filter((name) => typeof table[name].find((value) => value !== null) === "number"));
    const side = (name) => (numeric.has(name) ? { class: "n" } : {});
    const digits = new Map(names.map((name) => [name, numeric.has(name) ? decimals(table[name]) : 0]));
    const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col", ...side(name) }, name.replaceAll("_", " "))));
    const body = make("tbody", {}, ...table[names[0]].map((_, k) => make("tr", {}, ...names.map((name) => make("td", side(name), even(table[name][k], digits.get(name)))))));
    place.append(make("table", {}, make("caption", {}, make("span", {}, place.dataset.caption)), make("thead", {}, head), body));
  };
  // What a spreadsheet would take for a formula, also full-width signs, and after blanks; the same as in io/writing.py.
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
    button.addEventListener("click", () => save(new Blob([csv(data.tables[button.dataset.table])], { type: "text/csv" }), `${button.dataset.table}.csv`));
  });

  // Copies the methods: by selecting them, which works in frames and files, where the clipboard itself may be closed.
  document.querySelectorAll("button[data-copy]").forEach((button) => {
    button.addEventListener("click", () => {
      const text = document.getElementById(button.dataset.copy), range = document.createRange(), selection = getSelection();
      range.selectNodeContents(text);
      selection.removeAllRanges();
      selection.addRange(range);
      button.nextElementSibling.textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with Ctrl+C.";
    });
  });

  // The full name of what has a short one, on hover and focus.
  const fullName = make("div", { class: "tip full", role: "tooltip", id: "full-name", hidden: "" });
  document.body.append(fullName);
  const tellFull = (event) => {
    const brief = event.target.closest?.("[data-full]");
    fullName.hidden = !brief;
    if (!brief) return;
    fullName.textContent = brief.dataset.full;
    const box = brief.getBoundingClientRect(), under = box.bottom + 6 + fullName.offsetHeight <= innerHeight;
    fullName.style.left = `${Math.max(4, Math.min(root.clientWidth - fullName.offsetWidth - 4, box.left))}px`;
    fullName.style.top = `${under ? box.bottom + 6 : box.top - fullName.offsetHeight - 6}px`;
  };
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, tellFull);
  for (const kind of ["focusout", "scroll"]) document.addEventListener(kind, () => { fullName.hidden = true; }, { capture: true, passive: true });

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
  const closeOthers = (kept) => document.querySelectorAll(".plot").forEach((plot) => { if (plot !== kept) plot.reader?.clear(); });
  document.addEventListener("pointerdown", (event) => closeOthers(event.target.closest?.(".plot")));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    closeOthers(null);
    fullName.hidden = true;
  });

  form.addEventListener("change", draw);
  form.addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0, width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone's address bar comes and goes
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 100);
  });
  // On paper charts are drawn for the width of paper, so that their letters are as large as the others.
  for (const [kind, paper] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(kind, () => { root.classList.toggle("paper", paper); draw(); });
  }
  document.querySelectorAll(".needs-script").forEach((part) => { part.hidden = false; });
  const bar = new ResizeObserver(() => { root.style.scrollPaddingTop = getComputedStyle(form).position === "sticky" ? `${form.offsetHeight + 8}px` : "8px"; });
  bar.observe(form);
  tellTheme();
  addEventListener("pageshow", (event) => { if (event.persisted) draw(); });
  // The first screen is drawn at once, the rest when it has been seen.
  choose(state());
  drawCharts(charts(".answer .chart"), state());
  requestAnimationFrame(() => setTimeout(() => {
    draw();
    root.dataset.drawn = "";
  }));
})();
