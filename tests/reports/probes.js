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
