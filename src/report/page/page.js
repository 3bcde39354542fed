// What a reader can do with a page that is complete without it: values under the pointer, zoom,
// legends that switch series off, tabs.
(function () {
  "use strict";

  // "46 548 0 3600 linear elapsed": pixels from and to, values from and to, scale, unit, symbol.
  function axisOf(text) {
    const part = text.split(" ");
    return {
      from: +part[0], to: +part[1], min: +part[2], max: +part[3], log: part[4] === "log",
      unit: part[5], symbol: part.slice(6).join(" "),
    };
  }

  // Positions are turned back into values, so that no number is in the page twice.
  function valueAt(axis, pixel) {
    const part = (pixel - axis.from) / (axis.to - axis.from);
    if (axis.log) return axis.min * Math.pow(axis.max / axis.min, part);
    return axis.min + part * (axis.max - axis.min);
  }

  function pixelAt(axis, value) {
    return axis.from + (value - axis.min) / (axis.max - axis.min) * (axis.to - axis.from);
  }

  // The part of its width that a plot shows, in drawn pixels: all of it, or what it is zoomed to.
  function partOf(svg) { return svg.zoomed || axisOf(svg.dataset.x); }

  function digits(value) { return String(+value.toPrecision(4)); }

  function prefixed(value, billion) {
    for (const [factor, prefix] of [[1e12, "T"], [1e9, billion], [1e6, "M"], [1e3, "k"]]) {
      if (Math.abs(value) >= factor) return [digits(value / factor), prefix];
    }
    return [Math.abs(value) < 1e-9 ? "0" : digits(value), ""];
  }

  function durationText(seconds) {
    const size = Math.abs(seconds);
    if (size >= 172800) return digits(seconds / 86400) + " d";
    if (size >= 7200) return digits(seconds / 3600) + " h";
    if (size >= 120) return digits(seconds / 60) + " min";
    return size >= 1 || size === 0 ? digits(seconds) + " s" : digits(seconds * 1e3) + " ms";
  }

  function textOf(axis, value) {
    switch (axis.unit) {
      case "calendar": {
        const length = axis.max - axis.min > 10 * 86400 ? 16 : 19;
        return new Date(value * 1e3).toISOString().slice(0, length).replace("T", " ");
      }
      case "elapsed":
      case "duration":
        return durationText(value);
      case "share":
        return digits(value * 100) + " %";
      case "money":
        return "$" + prefixed(value, "B").join("");
      case "physical":
        return prefixed(value, "G").join(" ") + axis.symbol;
      default: {
        const count = Math.abs(value) < 1e4 ? digits(value) : prefixed(value, "G").join("");
        return axis.symbol ? count + " " + axis.symbol : count;
      }
    }
  }

  // Of a line, the top edge of an area (its last two points close it), or dots ("Mx yh0").
  function pointsOf(path) {
    if (path.points) return path.points;
    const numbers = (path.getAttribute("d").match(/-?[\d.]+/g) || []).map(Number);
    const stride = path.classList.contains("dots") ? 3 : 2;
    const end = numbers.length - (path.classList.contains("area") ? 4 : 0);
    path.points = [];
    for (let i = 0; i + 1 < end; i += stride) path.points.push([numbers[i], numbers[i + 1]]);
    return path.points;
  }

  function nearest(points, distance) {
    let best = { far: Infinity };
    for (const at of points) {
      const far = distance(at);
      if (far < best.far) best = { far, at };
    }
    return best;
  }

  function addRow(tip, path, text) {
    const row = document.createElement("div");
    const colour = path && /\b[lf]([0-6ma])\b/.exec(path.getAttribute("class"));
    if (colour) row.appendChild(document.createElement("i")).className = "f" + colour[1];
    row.appendChild(document.createTextNode(text));
    tip.appendChild(row);
  }

  // Each of these fills the tip and returns the x to mark, or null when nothing is there.
  function tellDots(svg, at, tip, paths) {
    let best = { far: 12 };
    for (const path of paths) {
      const near = nearest(pointsOf(path), (p) => {
        return Math.hypot((p[0] - at.x) * at.scale, p[1] - at.y);
      });
      if (near.far < best.far) best = { far: near.far, at: near.at, path };
    }
    if (!best.at) return null;
    const x = axisOf(svg.dataset.x);
    const y = axisOf(svg.dataset.y);
    addRow(tip, null, textOf(x, valueAt(x, best.at[0])));
    addRow(tip, best.path, best.path.dataset.n + ": " + textOf(y, valueAt(y, best.at[1])));
    return best.at[0];
  }

  function tellLines(svg, at, tip, paths) {
    const x = axisOf(svg.dataset.x);
    const y = axisOf(svg.dataset.y);
    const stacked = paths.some((path) => path.classList.contains("area"));
    // The top layer is painted first; each lies on those after it.
    if (stacked) paths.reverse();
    const rows = [];
    let cross = null;
    let under = 0;
    for (const path of paths) {
      const near = nearest(pointsOf(path), (p) => Math.abs(p[0] - at.x));
      if (!near.at) continue;
      if (cross === null) cross = near.at[0];
      const value = valueAt(y, near.at[1]);
      const own = stacked ? Math.max(value - under, 0) : value;
      under = value;
      if (!path.classList.contains("hidden")) {
        rows.push([path, path.dataset.n + ": " + textOf(y, own)]);
      }
    }
    if (cross === null) return null;
    if (stacked) rows.reverse();
    addRow(tip, null, textOf(x, valueAt(x, cross)));
    for (const [path, text] of rows) addRow(tip, path, text);
    return cross;
  }

  function tellCell(svg, at, tip) {
    const x = axisOf(svg.dataset.x);
    const names = svg.dataset.rows.split("|");
    const columns = svg.dataset.cells.length / names.length;
    const row = Math.floor((at.y - svg.dataset.top) / svg.dataset.thick);
    const column = Math.floor((at.x - x.from) / (x.to - x.from) * columns);
    if (row < 0 || row >= names.length || column < 0 || column >= columns) return null;
    const level = svg.dataset.cells[row * columns + column];
    const bound = (n) => Math.round(n * 100 / 9);
    const share = level === "." ? "none" : level === "0" ? "0 %"
      : bound(level - 1) + " to " + bound(+level) + " %";
    addRow(tip, null, textOf(x, valueAt(x, at.x)));
    addRow(tip, null, names[row] + ": " + share);
    return at.x;
  }

  function tellBar(svg, at, tip) {
    const bar = at.target;
    if (!bar.dataset.j) return null;
    const x = axisOf(svg.dataset.x);
    const box = bar.getBBox();
    const row = Math.floor((at.y - svg.dataset.top) / svg.dataset.thick);
    addRow(tip, bar, bar.dataset.j);
    addRow(tip, null, svg.dataset.rows.split("|")[row] || "");
    addRow(tip, null, textOf(x, valueAt(x, box.x)) + " to "
      + textOf(x, valueAt(x, box.x + box.width)));
    return at.x;
  }

  function tell(svg, at, tip) {
    if (svg.dataset.cells) return tellCell(svg, at, tip);
    if (svg.dataset.rows) return tellBar(svg, at, tip);
    const paths = Array.from(svg.querySelectorAll("path[data-n]"));
    if (!paths.some((path) => path.classList.contains("dots"))) {
      return tellLines(svg, at, tip, paths);
    }
    return tellDots(svg, at, tip, paths.filter((path) => !path.classList.contains("hidden")));
  }

  function clear(plot) {
    for (const element of plot.querySelectorAll(".tip,.cursor")) element.remove();
  }

  function drawCursor(svg, at) {
    const axis = axisOf(svg.dataset.y);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const place = { class: "cursor", x1: at, x2: at, y1: axis.from, y2: axis.to };
    for (const name in place) line.setAttribute(name, place[name]);
    svg.appendChild(line);
  }

  // Where the pointer is, in pixels of the picture; null while the picture is not shown.
  function placeIn(svg, event) {
    const matrix = svg.getScreenCTM();
    if (!matrix) return null;
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
  }

  function show(plot, svg, event) {
    clear(plot);
    const at = placeIn(svg, event);
    const x = axisOf(svg.dataset.x);
    if (!at || at.x < x.from - 6 || at.x > x.to + 6) return;
    const tip = document.createElement("div");
    tip.className = "tip";
    const part = partOf(svg);
    const scale = (x.to - x.from) / (part.to - part.from);
    const drawn = {
      x: part.from + (at.x - x.from) / scale, y: at.y, scale, target: event.target,
    };
    const cross = tell(svg, drawn, tip);
    if (cross === null) return;
    if (svg.dataset.y) {
      drawCursor(svg, Math.min(Math.max(x.from + (cross - part.from) * scale, x.from), x.to));
    }
    plot.appendChild(tip);
    const box = plot.getBoundingClientRect();
    const pointer = event.clientX - box.left;
    const fits = pointer + 14 + tip.offsetWidth <= box.width;
    tip.style.left = Math.max(0, fits ? pointer + 14 : pointer - tip.offsetWidth - 14) + "px";
    tip.style.top = Math.max(0, event.clientY - box.top - tip.offsetHeight - 10) + "px";
  }

  // --- Zoom: every plot over time shows the same part of it ---

  const timed = Array.from(document.querySelectorAll(".plot>svg[data-x]")).filter((svg) => {
    const x = axisOf(svg.dataset.x);
    return svg.querySelector(".inside") && !x.log && x.max > x.min
      && (x.unit === "elapsed" || x.unit === "calendar");
  });
  const showAll = document.createElement("button");

  function tickStep(span) {
    const day = 86400;
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
      43200, day, 2 * day, 7 * day, 14 * day, 30 * day, 91 * day, 182 * day];
    return steps.find((step) => span / step <= 6) || 365 * day;
  }

  function tickText(x, value, step) {
    if (x.unit !== "calendar") return durationText(value);
    const text = new Date(value * 1e3).toISOString().replace("T", " ");
    return step >= 86400 ? text.slice(0, 10) : text.slice(5, step < 60 ? 19 : 16);
  }

  function drawTicks(svg, x, from, to) {
    const ticks = svg.querySelector(".ticks");
    const line = ticks.querySelector("line");
    const text = ticks.querySelector("text");
    if (!line || !text) return;
    if (!ticks.all) ticks.all = ticks.innerHTML;
    ticks.textContent = "";
    const step = tickStep(to - from);
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
      const at = x.from + (value - from) / (to - from) * (x.to - x.from);
      const mark = ticks.appendChild(line.cloneNode());
      mark.setAttribute("x1", at);
      mark.setAttribute("x2", at);
      const label = ticks.appendChild(text.cloneNode());
      label.setAttribute("x", Math.min(at, x.to - 20));
      label.textContent = tickText(x, value, step);
    }
  }

  // Shows the part of time from `from` to `to`; without them all of it.
  function zoom(from, to) {
    for (const svg of timed) {
      const x = axisOf(svg.dataset.x);
      const inside = svg.querySelector(".inside");
      if (!inside.all) inside.all = inside.getAttribute("viewBox");
      const box = inside.all.split(" ");
      svg.zoomed = null;
      if (from !== undefined) {
        svg.zoomed = { from: pixelAt(x, from), to: pixelAt(x, to) };
        box[0] = svg.zoomed.from;
        box[2] = svg.zoomed.to - svg.zoomed.from;
        drawTicks(svg, x, from, to);
      } else {
        const ticks = svg.querySelector(".ticks");
        if (ticks.all) ticks.innerHTML = ticks.all;
      }
      inside.setAttribute("viewBox", box.join(" "));
    }
    showAll.classList.toggle("hidden", from === undefined);
  }

  function watchDrag(plot, svg) {
    const x = axisOf(svg.dataset.x);
    let start = null;
    let band = null;
    const within = (event) => {
      const at = placeIn(svg, event);
      return at ? Math.min(Math.max(at.x, x.from), x.to) : x.from;
    };
    const valueOf = (pixel) => {
      const part = partOf(svg);
      return valueAt(x, part.from + (pixel - x.from) / (x.to - x.from) * (part.to - part.from));
    };
    svg.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType !== "touch") start = within(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const at = within(event);
      if (!band && Math.abs(at - start) < 5) return;
      clear(plot);
      if (!band) {
        band = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
        band.setAttribute("class", "chosen");
        band.setAttribute("y", 20);
        band.setAttribute("height", svg.viewBox.baseVal.height - 60);
        svg.setPointerCapture(event.pointerId);
      }
      band.setAttribute("x", Math.min(start, at));
      band.setAttribute("width", Math.abs(at - start));
    });
    const end = (event) => {
      const at = within(event);
      const chosen = band && Math.abs(at - start) >= 5;
      if (band) band.remove();
      if (chosen && event.type === "pointerup") {
        zoom(valueOf(Math.min(start, at)), valueOf(Math.max(start, at)));
      }
      start = band = null;
    };
    svg.addEventListener("pointerup", end);
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("dblclick", () => zoom());
  }

  if (timed.length > 0) {
    showAll.type = "button";
    showAll.className = "all hidden";
    showAll.textContent = "Show the whole time";
    showAll.addEventListener("click", () => zoom());
    document.body.appendChild(showAll);
    for (const figures of document.querySelectorAll(".figures")) {
      if (!timed.some((svg) => figures.contains(svg))) continue;
      const hint = document.createElement("p");
      hint.className = "note hint";
      hint.textContent = "Drag over a plot to zoom all plots over time; a double click shows the "
        + "whole time again.";
      figures.before(hint);
    }
    for (const svg of timed) watchDrag(svg.parentElement, svg);
  }

  for (const plot of document.querySelectorAll(".plot")) {
    const svg = plot.querySelector("svg");
    if (svg.dataset.x) {
      svg.addEventListener("pointermove", (event) => show(plot, svg, event));
      svg.addEventListener("pointerdown", (event) => show(plot, svg, event));
      svg.addEventListener("pointerleave", () => clear(plot));
    }
    for (const button of plot.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => {
        const off = button.classList.toggle("off");
        for (const element of svg.querySelectorAll(`[data-k="${button.dataset.k}"]`)) {
          element.classList.toggle("hidden", off);
        }
      });
    }
  }

  for (const bar of document.querySelectorAll(".tabs")) {
    const buttons = Array.from(bar.children);
    const choose = (chosen) => {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", i === chosen);
        document.getElementById(button.dataset.part).classList.toggle("hidden", i !== chosen);
      });
    };
    buttons.forEach((button, i) => {
      button.addEventListener("click", () => choose(i));
      button.addEventListener("keydown", (event) => {
        const next = i + (event.key === "ArrowRight") - (event.key === "ArrowLeft");
        if (next === i || !buttons[next]) return;
        choose(next);
        buttons[next].focus();
      });
    });
    bar.classList.add("live");
    choose(0);
  }
})();
