// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Draws the charts from the page's data block. Colours come from the style sheet, so that a change of theme
// only needs a redraw; every text comes ready-made from the data.
"use strict";

const gpuprof = (() => {
  const data = JSON.parse(document.getElementById("gpuprof-data").textContent);
  const CONFIG = { displayModeBar: false, responsive: false, showTips: false };
  const FONT = getComputedStyle(document.body).fontFamily;
  const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "cross", "star"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const ROW_PX = 34;
  // A ladder of many rungs stands closer, so that more of it is seen at once.
  const DENSE_ROW_PX = 27;
  const MANY_ROWS = 16;
  const NARROW_PX = 620;
  const SERIES = 8;

  const measure = document.createElement("canvas").getContext("2d");
  const textWidth = (text, px) => {
    measure.font = `${px}px ${FONT}`;
    return measure.measureText(text).width;
  };
  // Plotly reads a small HTML in its texts; kernel names and reasons are plain text.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const clip = (text, width, px) => {
    if (textWidth(text, px) <= width) return text;
    let kept = text;
    while (kept.length > 1 && textWidth(`${kept}…`, px) > width) kept = kept.slice(0, -1);
    return `${kept}…`;
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function baseLayout(element, height) {
    return {
      width: element.clientWidth,
      height,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: FONT, size: 12, color: colour("ink") },
      hoverlabel: {
        bgcolor: colour("surface"),
        bordercolor: colour("rule"),
        font: { family: FONT, size: 12.5, color: colour("ink") },
        align: "left",
      },
      showlegend: false,
      dragmode: false,
      shapes: [],
      annotations: [],
    };
  }

  const axis = (title, more) => ({
    title: { text: title, font: { size: 12, color: colour("soft") }, standoff: 12 },
    tickfont: { size: 11.5, color: colour("soft") },
    gridcolor: colour("rule"),
    linecolor: colour("rule"),
    zeroline: false,
    fixedrange: true,
    automargin: true,
    ...more,
  });

  // ---------------------------------------------------------------- ladder

  /** Where values stand on a ladder's axis: 0 at its foot; a ratio's logarithmic axis has its foot at one half. */
  const LOG_FOOT = Math.log10(0.5);
  const along = (metric) => (metric.logarithmic ? (value) => Math.log10(Math.max(value, 0.5)) - LOG_FOOT : (value) => value);

  /** Where the last thing drawn of a bar ends: its value, its whisker or its mark. */
  const barEnd = (bar) => Math.max(bar.high, bar.value, bar.mark || 0);

  /** Axis end, as a distance from its foot, at which every bar leaves room for its label and near limits show. */
  function ladderRange(metric, labels, width) {
    const at = along(metric);
    let end = 0;
    let longest = 0;
    metric.bars.forEach((bar, i) => {
      if (!bar) return;
      const room = Math.max(width - textWidth(labels[i], 12) - 16, 0.3 * width);
      const top = at(barEnd(bar));
      end = Math.max(end, (top * width) / room);
      longest = Math.max(longest, top);
    });
    for (const line of metric.lines) if (at(line.value) <= 2.5 * longest) end = Math.max(end, at(line.value) * 1.02);
    return end > 0 ? end : 1;
  }

  /** Each bar's label, less its last parts where they would stretch the axis beyond the bars and the limits. */
  function ladderLabels(metric, width, narrow) {
    const tops = metric.bars.filter(Boolean).map(barEnd);
    const longest = Math.max(0, ...tops);
    const near = metric.lines.map((line) => line.value).filter((value) => value <= 2.5 * longest);
    const end = Math.max(longest * 1.25, ...near);
    return metric.bars.map((bar) => {
      if (!bar || narrow) return bar ? bar.short : "";
      const room = width * (1 - barEnd(bar) / end) - 16;
      const parts = bar.text.split(" · ");
      while (parts.length > 3 && textWidth(parts.join(" · "), 12) > room) parts.pop();
      return parts.join(" · ");
    });
  }

  function ladderRows(spec) {
    // References stand apart from the rungs by half a row.
    let extra = 0;
    return spec.rows.map((row, i) => {
      if (row.reference && i > 0 && !spec.rows[i - 1].reference) extra = 0.45;
      return i + extra;
    });
  }

  function barColour(row) {
    if (row.reference || row.ceiling) return colour("reference");
    return row.fastest ? colour("accent-strong") : colour("accent");
  }

  function ladder(spec, element) {
    const metric = spec.metrics[element.gpuprofMetric || 0];
    const narrow = element.clientWidth < NARROW_PX;
    const positions = ladderRows(spec);
    // Measured a size larger than drawn: the fastest name is bold.
    const names = spec.rows.map((row) => clip(row.name, element.clientWidth * 0.34, 14));
    const left = Math.max(...names.map((name) => textWidth(name, 14))) + 16;
    const width = element.clientWidth - left - 8;
    const labels = ladderLabels(metric, width, narrow);
    const at = along(metric);
    const end = ladderRange(metric, labels, width);
    const shown = metric.lines.filter((line) => at(line.value) <= end);
    const beyond = metric.lines.filter((line) => at(line.value) > end);
    const top = 8 + 18 * (shown.length + (beyond.length ? 1 : 0));
    const last = positions[positions.length - 1];
    const rowPx = spec.rows.length > MANY_ROWS ? DENSE_ROW_PX : ROW_PX;
    const layout = baseLayout(element, top + (last + 1) * rowPx + 52);
    layout.margin = { l: left, r: 8, t: top, b: 52, pad: 0 };
    layout.xaxis = axis(clip(narrow ? metric.axis.split(";")[0] : metric.axis, width, 12), {
      ...(metric.logarithmic ? { type: "log", range: [LOG_FOOT, LOG_FOOT + end], dtick: 1 } : { range: [0, end], nticks: narrow ? 5 : 8 }),
      automargin: false,
    });
    layout.yaxis = { range: [last + 0.5, -0.5], visible: false, fixedrange: true };
    layout.bargap = 0.42;

    const drawn = spec.rows.map((_, i) => i).filter((i) => metric.bars[i]);
    const whiskers = drawn.some((i) => metric.bars[i].high > metric.bars[i].low);
    const trace = {
      type: "bar",
      orientation: "h",
      x: drawn.map((i) => metric.bars[i].value),
      y: drawn.map((i) => positions[i]),
      width: drawn.map(() => 0.56),
      customdata: drawn.map((i) => spec.rows[i].anchor),
      marker: { color: drawn.map((i) => barColour(spec.rows[i])), line: { width: 0 } },
      hovertext: drawn.map((i) => `<b>${plain(spec.rows[i].name)}</b>  ${plain(spec.rows[i].shape)}<br>${plain(metric.bars[i].text)}`),
      hovertemplate: "%{hovertext}<extra></extra>",
      textposition: "none",
    };
    if (whiskers) {
      trace.error_x = {
        type: "data",
        symmetric: false,
        array: drawn.map((i) => Math.max(0, metric.bars[i].high - metric.bars[i].value)),
        arrayminus: drawn.map((i) => Math.max(0, metric.bars[i].value - metric.bars[i].low)),
        color: colour("ink"),
        thickness: 1.1,
        width: 4,
      };
    }
    drawn.filter((i) => metric.bars[i].mark).forEach((i) => layout.shapes.push({
      type: "line", x0: metric.bars[i].mark, x1: metric.bars[i].mark, y0: positions[i] - 0.36, y1: positions[i] + 0.36,
      line: { color: colour("bad"), width: 2 },
    }));
    spec.rows.forEach((row, i) => {
      layout.annotations.push(nameAnnotation(row, names[i], positions[i]));
      layout.annotations.push(valueAnnotation(row, metric, metric.bars[i], labels[i], positions[i], width));
    });
    limits(layout, metric, shown, beyond, end, width);
    return { traces: [trace], layout };
  }

  const nameAnnotation = (row, name, y) => ({
    xref: "paper", x: 0, xanchor: "right", xshift: -10, y, yanchor: "middle", showarrow: false,
    text: row.fastest ? `<b>${plain(name)}</b>` : plain(name),
    font: { size: 12.5, color: colour(row.reference || row.ceiling ? "soft" : "ink") },
    captureevents: true, gpuprofAnchor: row.anchor, name: row.anchor,
  });

  function valueAnnotation(row, metric, bar, label, y, width) {
    // Plotly takes an annotation's place on a logarithmic axis as a logarithm, a shape's as a value.
    const place = (value) => (metric.logarithmic ? Math.log10(Math.max(value, 0.5)) : value);
    const common = { y, yanchor: "middle", xanchor: "left", xshift: 7, showarrow: false, borderpad: 1 };
    if (bar) {
      return { ...common, x: place(barEnd(bar)), text: plain(label), bgcolor: colour("surface"), font: { size: 12, color: colour("ink") } };
    }
    const text = row.usable ? "not measured" : `${row.status}${row.reason ? `: ${row.reason}` : ""}`;
    const bad = !row.usable && !row.status.startsWith("○");
    return { ...common, x: place(0), text: plain(clip(text, width - 12, 12)), hovertext: plain(text), font: { size: 12, color: colour(bad ? "bad" : "soft") } };
  }

  function limits(layout, metric, shown, beyond, end, width) {
    const at = along(metric);
    shown.forEach((line, i) => {
      layout.shapes.push({
        type: "line", x0: line.value, x1: line.value, yref: "paper", y0: 0, y1: 1, layer: "below",
        line: { color: colour("faint"), width: 1.2, dash: "dash" },
      });
      const px = (at(line.value) / end) * width;
      layout.annotations.push({
        x: metric.logarithmic ? Math.log10(line.value) : line.value, yref: "paper", y: 1, yanchor: "bottom", yshift: 2 + 17 * i, showarrow: false,
        xanchor: px > width / 2 ? "right" : "left", text: plain(line.label), font: { size: 11.5, color: colour("soft") },
      });
    });
    if (beyond.length) {
      layout.annotations.push({
        xref: "paper", x: 1, xanchor: "right", yref: "paper", y: 1, yanchor: "bottom", yshift: 2 + 17 * shown.length,
        showarrow: false, font: { size: 11.5, color: colour("soft") },
        text: plain(clip(`beyond this axis: ${beyond.map((line) => line.label).join(", ")} →`, width, 11.5)),
      });
    }
  }

  // ---------------------------------------------------------------- scaling and roofline

  const seriesColour = (i) => colour(`series-${(i % SERIES) + 1}`);
  // Plotly sets a legend's names in columns as wide as the longest; many kernels must not squeeze the plot.
  const LEGEND_SYMBOL_PX = 48;
  const legendHeight = (names, width) => {
    const column = Math.max(...names.map((name) => textWidth(name, 12))) + LEGEND_SYMBOL_PX;
    return 20 * Math.ceil(names.length / Math.max(1, Math.floor((width - 80) / column)));
  };
  const legend = () => ({ orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 12 }, itemclick: "toggle" });

  function scaling(spec, element) {
    const layout = baseLayout(element, 380 + legendHeight(spec.series.map((series) => series.name), element.clientWidth));
    const xs = spec.ticks.map((tick) => Math.log10(tick[0]));
    const pad = Math.max(0.06, (Math.max(...xs) - Math.min(...xs)) * 0.05);
    layout.margin = { l: 60, r: 16, t: 8, b: 52 };
    layout.showlegend = true;
    layout.legend = legend();
    // Lines that the reader added or removed stay so when a change of theme or width draws anew.
    layout.uirevision = "kept";
    layout.hovermode = "closest";
    layout.xaxis = axis("problem size (logarithmic)", {
      type: "log", tickvals: spec.ticks.map((tick) => tick[0]), ticktext: spec.ticks.map((tick) => plain(tick[1])),
      range: [Math.min(...xs) - pad, Math.max(...xs) + pad],
    });
    const logarithmic = (element.gpuprofMetric || 0) === 1;
    layout.yaxis = axis(
      `${spec.unit}, cold median; whiskers p05–p95`,
      logarithmic ? { type: "log", dtick: 1 } : { rangemode: "tozero" },
    );
    const traces = spec.series.map((series, i) => ({
      type: "scatter",
      mode: "lines+markers",
      name: plain(series.name),
      visible: series.shown ? true : "legendonly",
      x: series.x,
      y: series.y,
      line: { color: series.reference ? colour("reference") : seriesColour(i), width: 1.8, dash: series.reference ? "dash" : DASHES[Math.floor(i / SERIES) % DASHES.length] },
      marker: { size: 6.5, symbol: SYMBOLS[Math.floor(i / SERIES) % SYMBOLS.length] },
      error_y: { type: "data", symmetric: false, array: series.up, arrayminus: series.down, thickness: 1, width: 3 },
      text: series.text.map(plain),
      hovertemplate: `<b>${plain(series.name)}</b><br>%{text}<extra></extra>`,
    }));
    return { traces, layout };
  }

  /** One level of the memory hierarchy: roofs, kernels at the largest size in full, and the ladder's steps. */
  function roofline(chart, element) {
    const spec = { peak: chart.peak, ...chart.levels[element.gpuprofMetric || 0] };
    const kernels = [...new Set(spec.points.map((point) => point.kernel))];
    const named = legendHeight(kernels, element.clientWidth);
    const height = 420 + named;
    const layout = baseLayout(element, height);
    const best = Math.max(...spec.roofs.map((roof) => roof.gbps));
    const ridge = spec.peak.value / best;
    const xs = spec.points.map((point) => point.x);
    const ys = spec.points.map((point) => point.y);
    const x0 = Math.log10(Math.min(...xs, ridge) / 10);
    const x1 = Math.log10(Math.max(...xs, ridge) * 3);
    const y0 = Math.log10(Math.min(...ys, best * 10 ** x0) / 1.6);
    const y1 = Math.log10(spec.peak.value * 1.9);
    const margin = { l: 64, r: 16, t: 8, b: 52 };
    layout.margin = margin;
    layout.showlegend = true;
    layout.legend = legend();
    // Lines that the reader added or removed stay so when a change of theme or width draws anew.
    layout.uirevision = "kept";
    layout.hovermode = "closest";
    layout.xaxis = axis(`arithmetic intensity, FLOP per byte: ${plain(spec.label)}`, { type: "log", range: [x0, x1], dtick: 1 });
    layout.yaxis = axis(spec.points.some((point) => point.bound) ? "GFLOP/s at most, by bounds" : "GFLOP/s, cold median", { type: "log", range: [y0, y1], dtick: 1 });
    const slope = ((height - margin.t - margin.b - named) / (y1 - y0)) / ((element.clientWidth - margin.l - margin.r) / (x1 - x0));
    const angle = (-Math.atan(slope) * 180) / Math.PI;
    const traces = spec.roofs.map((roof) => {
      const knee = spec.peak.value / roof.gbps;
      return {
        type: "scatter", mode: "lines", showlegend: false, hoverinfo: "skip",
        x: [10 ** x0, knee, ...(roof.measured ? [] : [10 ** x1])],
        y: [10 ** x0 * roof.gbps, spec.peak.value, ...(roof.measured ? [] : [spec.peak.value])],
        line: { color: colour(roof.measured ? "faint" : "ink"), width: 1.4, dash: roof.measured ? "dash" : "solid" },
      };
    });
    spec.roofs.forEach((roof) => {
      const at = (x0 + Math.log10(spec.peak.value / best)) / 2;
      layout.annotations.push({
        x: at, y: at + Math.log10(roof.gbps), text: plain(roof.label), showarrow: false, textangle: angle,
        yshift: roof.measured ? -9 : 9, xshift: roof.measured ? 7 : -7, font: { size: 11.5, color: colour("soft") },
      });
    });
    layout.annotations.push({
      x: x1, y: Math.log10(spec.peak.value), xanchor: "right", yanchor: "bottom", showarrow: false,
      text: plain(spec.peak.label), font: { size: 11.5, color: colour("soft") },
    });
    spec.steps.forEach(([from, to]) => {
      const [start, end] = [spec.points[from], spec.points[to]];
      layout.annotations.push({
        x: Math.log10(end.x), y: Math.log10(end.y), ax: Math.log10(start.x), ay: Math.log10(start.y),
        axref: "x", ayref: "y", showarrow: true, text: "", arrowhead: 2, arrowsize: 0.9, arrowwidth: 1.1,
        standoff: 6, startstandoff: 6, arrowcolor: colour("faint"), opacity: 0.8,
      });
    });
    kernels.forEach((kernel, i) => {
      const points = spec.points.filter((point) => point.kernel === kernel);
      traces.push({
        type: "scatter", mode: "markers", name: plain(kernel),
        x: points.map((point) => point.x),
        y: points.map((point) => point.y),
        marker: {
          size: points.map((point) => (point.last ? 10 : 6)),
          opacity: points.map((point) => (point.last ? 1 : 0.45)),
          color: points[0].reference ? colour("reference") : seriesColour(i),
          symbol: points[0].reference ? "x" : SYMBOLS[i % SYMBOLS.length] + (points[0].bound ? "-open" : ""),
          line: { width: points[0].bound ? 2 : 1, color: points[0].bound ? seriesColour(i) : colour("surface") },
        },
        text: points.map((point) => `${plain(point.size)}: ${plain(point.text)}<br>${plain(point.intensity)}`),
        hovertemplate: `<b>${plain(kernel)}</b><br>%{text}<extra></extra>`,
      });
    });
    return { traces, layout };
  }

  // ---------------------------------------------------------------- matrix and bars

  const MARGIN = { l: 64, r: 10, t: 30, b: 52 };
  const marks = (spec, row, column) => (spec.best[row][column] ? " ★" : "") + (spec.default[row][column] ? " ◇" : "");

  /** Texts of a row's cells and the size that they fit in; where none does, only those of marked cells stay. */
  function fitted(spec, room) {
    const texts = spec.text.map((row, i) => row.map((text, j) => text + marks(spec, i, j)));
    const longest = Math.max(...texts.flat().map((text) => textWidth(text, 13)));
    const size = longest <= room ? 13 : Math.max(10, (13 * room) / longest);
    if ((longest * size) / 13 <= room) return { texts, size };
    return { texts: texts.map((row, i) => row.map((_, j) => marks(spec, i, j).trim())), size: 12 };
  }

  const note = (text) => ({
    xref: "paper", x: 0, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom", yshift: 6, showarrow: false,
    text: plain(text), font: { size: 12, color: colour("soft") },
  });

  function matrix(spec, element) {
    const margin = { ...MARGIN, t: spec.label ? MARGIN.t : 6 };
    const cell = Math.min(110, (element.clientWidth - 80) / spec.xs.length);
    const layout = baseLayout(element, 46 * spec.ys.length + margin.t + 62);
    layout.width = Math.min(element.clientWidth, cell * spec.xs.length + 80);
    layout.margin = margin;
    layout.xaxis = axis(plain(spec.x_title), { type: "category", showgrid: false, automargin: false });
    layout.yaxis = axis(plain(spec.y_title), { type: "category", autorange: "reversed", showgrid: false, automargin: false });
    if (spec.label) layout.annotations.push(note(spec.label));
    const shade = (value) => (value === null ? null : spec.logarithmic ? Math.log(value) : value);
    const [low, high] = [shade(spec.low), shade(spec.high)];
    const scale = [[0, colour("heat-low")], [1, colour("heat-high")]];
    const dark = document.documentElement.dataset.effective === "dark";
    const { texts, size } = fitted(spec, cell - 8);
    spec.ys.forEach((_, row) => spec.xs.forEach((__, column) => {
      const value = shade(spec.z[row][column]);
      const share = value === null || high === low ? 0 : (value - low) / (high - low);
      const strong = (spec.reversed ? 1 - share : share) > 0.5;
      layout.annotations.push({
        x: column, y: row, showarrow: false, text: plain(texts[row][column]),
        font: { size, color: strong && value !== null ? (dark ? "#10151a" : "#ffffff") : colour("ink") },
      });
      if (spec.best[row][column]) {
        layout.shapes.push({
          type: "rect", x0: column - 0.485, x1: column + 0.485, y0: row - 0.47, y1: row + 0.47,
          line: { color: colour("ink"), width: 2 },
        });
      }
    }));
    return {
      traces: [{
        type: "heatmap", x: spec.xs.map(String), y: spec.ys.map(String), z: spec.z.map((row) => row.map(shade)), xgap: 3, ygap: 3,
        colorscale: scale, reversescale: spec.reversed, showscale: false,
        zmin: low, zmax: high === low ? low + 1 : high,
        text: spec.hover.map((row) => row.map(plain)), hovertemplate: "%{text}<extra></extra>",
      }],
      layout,
    };
  }

  /** Bars over the values of one parameter. */
  function bars(spec, element) {
    const layout = baseLayout(element, 210);
    const cell = (element.clientWidth - 24) / spec.xs.length;
    const { texts, size } = fitted(spec, cell - 4);
    layout.margin = { l: 12, r: 12, t: 6, b: 52 };
    layout.xaxis = axis(plain(spec.x_title), { type: "category", showgrid: false, automargin: false });
    layout.yaxis = { visible: false, fixedrange: true, range: [0, (spec.high || 1) * 1.2] };
    layout.bargap = 0.3;
    spec.xs.forEach((_, column) => layout.annotations.push({
      x: column, y: spec.z[0][column] || 0, yanchor: "bottom", showarrow: false, text: plain(texts[0][column]),
      font: { size, color: colour(spec.z[0][column] === null ? "bad" : "ink") },
    }));
    return {
      traces: [{
        type: "bar", x: spec.xs.map(String), y: spec.z[0].map((value) => value || 0),
        marker: { color: spec.best[0].map((best) => colour(best ? "accent-strong" : "accent")) },
        text: spec.hover[0].map(plain), textposition: "none", hovertemplate: "%{text}<extra></extra>",
      }],
      layout,
    };
  }

  const BUILDERS = { ladder, scaling, roofline, matrix, bars };

  /** Draws one chart if it is on screen at all; a hidden one has no width to draw into. */
  function draw(element) {
    if (!element.clientWidth) return;
    const spec = data.charts[element.dataset.chart];
    const { traces, layout } = BUILDERS[spec.kind](spec, element);
    Plotly.react(element, traces, layout, CONFIG);
    if (spec.kind !== "ladder" || element.gpuprofClicks) return;
    element.gpuprofClicks = true;
    element.on("plotly_click", (event) => open(event.points[0].customdata));
    element.on("plotly_clickannotation", (event) => open(event.annotation.name));
    element.classList.add("clickable");
  }

  function open(anchor) {
    if (anchor) window.location.hash = anchor;
  }

  const drawAll = (root = document) => root.querySelectorAll(".plot[data-chart]").forEach(draw);

  return { data, draw, drawAll };
})();
