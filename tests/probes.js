// What tests measure in the page; one expression, of functions without arguments.
({
  // The text that lies wholly within the window, and is not hidden from sight.
  visibleText() {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const inside = (box) => box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement, range = document.createRange();
      if (!node.data.trim() || !parent.checkVisibility() || parent.closest(".sr, title")) continue;
      range.selectNodeContents(node);
      const boxes = [...range.getClientRects()];
      if (boxes.length && boxes.every(inside)) found.push(node.data.trim());
    }
    return found.join(" ").replace(/\s+/g, " ");
  },

  // Texts of a chart whose boxes overlap, or that stick out of it; rows stand closer than lines of prose.
  overlaps() {
    const drawn = [...document.querySelectorAll(".chart svg:not(.swatch)")].filter((svg) => svg.checkVisibility());
    return drawn.flatMap((svg) => {
      const frame = svg.getBoundingClientRect(), chart = svg.closest("[data-chart]").dataset.chart;
      const texts = [...svg.querySelectorAll("text")].map((text) => ({
        said: text.firstChild?.data ?? "",
        box: text.getBoundingClientRect(),
      }));
      const sticksOut = ({ left, right, top, bottom }) =>
        left < frame.left - 2 || right > frame.right + 2 || top < frame.top - 2 || bottom > frame.bottom + 2;
      const found = texts.filter(({ box }) => sticksOut(box)).map(({ said }) => `${chart} cuts ${said}`);
      texts.forEach((a, k) => texts.slice(k + 1).forEach((b) => {
        const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (wide > 1 && high > 4) found.push(`${chart}: ${a.said} | ${b.said}`);
      }));
      return found;
    });
  },

  // What is wider than its box, or than the window, and does not scroll with a shadow that says so.
  tooWide() {
    const seen = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility());
    return seen.filter((e) => !e.closest(".sr, svg, script, .skip")).flatMap((e) => {
      const scroller = e.closest(".scroll"), over = e.scrollWidth > e.clientWidth + 1;
      if (e === scroller) {
        const cue = getComputedStyle(e).backgroundImage.includes("gradient");
        return over && !cue ? [`no cue: ${e.getAttribute("aria-label")}`] : [];
      }
      if (scroller) return e.matches("td, th") && over ? [`cell: ${e.textContent}`] : [];
      const hides = e.clientWidth && over && !e.querySelector(".sr");
      const wide = hides || e.getBoundingClientRect().right > innerWidth + 1;
      return wide ? [`${e.tagName}.${e.className}: ${e.textContent.slice(0, 60)}`] : [];
    });
  },

  // Of any page: lines of text that leave the window or a box that hides what sticks out, that nobody can scroll to, or
  // that lie on another; and pictures that are missing, or wider than the page.
  pageFaults() {
    const known = new Map([[document.body, { scroller: null, hiding: [] }]]);
    const around = (e) => {
      if (!known.has(e)) {
        const outer = around(e.parentElement), overflow = getComputedStyle(e).overflowX;
        const hides = ["hidden", "clip"].includes(overflow), scrolls = ["auto", "scroll"].includes(overflow);
        const here = hides ? { ...outer, hiding: [...outer.hiding, e] } : outer;
        known.set(e, scrolls ? { scroller: e, hiding: [] } : here);
      }
      return known.get(e);
    };
    const lines = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, parent = node.parentElement, range = document.createRange();
      if (!node.data.trim() || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      if (parent.closest("math, svg, script, style, noscript")) continue;
      range.selectNodeContents(node);
      const { scroller, hiding } = around(parent), frame = scroller?.getBoundingClientRect();
      for (const box of range.getClientRects()) {
        const inSight = !frame || (box.right <= frame.right && box.left >= frame.left);
        if (box.bottom + scrollY <= 0 || box.width <= 1 || !inSight) continue;
        lines.push({ said: node.data.trim().slice(0, 60), box, scroller, hiding });
      }
    }
    const sticksOut = ({ box, scroller, hiding }) => {
      const bounds = hiding.map((e) => e.getBoundingClientRect());
      if (!scroller) bounds.push({ left: 0, right: document.documentElement.clientWidth });
      return bounds.some(({ left, right }) => box.left < left - 1 || box.right > right + 1);
    };
    const cut = lines.filter(sticksOut).map(({ said }) => `cut: ${said}`);
    lines.sort((a, b) => a.box.top - b.box.top);
    const onOthers = lines.flatMap((a, k) => {
      const found = [];
      for (let j = k + 1; j < lines.length && lines[j].box.top < a.box.bottom - 4; j++) {
        const b = lines[j], wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const high = Math.min(a.box.bottom, b.box.bottom) - b.box.top;
        if (wide > 2 && high > 4) found.push(`${a.said} | ${b.said}`);
      }
      return found;
    });
    const pictures = [...document.images].filter((e) => e.checkVisibility()).flatMap((e) => {
      const box = e.getBoundingClientRect(), wide = box.right > innerWidth + 1 || box.left < -1;
      const fault = !e.naturalWidth ? "missing" : wide ? "too wide" : "";
      return fault ? [`${fault}: ${e.getAttribute("src")}`] : [];
    });
    return [...cut, ...onOthers, ...pictures];
  },

  // Rows of tables in which a cell's text runs into the next one's.
  touchingCells() {
    const endsOf = (cell) => {
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), boxes = [];
      while (walker.nextNode()) {
        if (walker.currentNode.parentElement.closest(".sr")) continue;
        const range = document.createRange();
        range.selectNodeContents(walker.currentNode);
        boxes.push(...range.getClientRects());
      }
      return boxes.length ? [Math.min(...boxes.map((b) => b.left)), Math.max(...boxes.map((b) => b.right))] : null;
    };
    const tables = [...document.querySelectorAll("table")].filter((table) => table.checkVisibility());
    return tables.flatMap((table) => [...table.rows].slice(0, 60).flatMap((row) => {
      const ends = [...row.cells].map(endsOf).filter(Boolean);
      return ends.slice(1).some(([left], k) => left < ends[k][1]) ? [row.textContent] : [];
    }));
  },
})
