// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// The charts stand in the page as they were drawn. This shows their other drawings, and starts Plotly when a
// reader wants to look closer. Colours come from the style sheet, every text ready-made from the data.
"use strict";

const gpuprof = (() => {
  const SHAPES = ["circle", "diamond", "square", "triangle-up", "triangle-down", "cross", "hourglass"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const COLOURS = 8;
  const CONFIG = {
    responsive: true, displaylogo: false, showTips: false, displayModeBar: true,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d", "resetScale2d"]],
  };

  // ---------------------------------------------------------------- what the page keeps compressed

  // Base 85: five letters for four bytes, and a comma for the one letter that means something in a script element.
  const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

  function bytesOf(text) {
    const values = new Uint8Array(128);
    [...LETTERS].forEach((letter, value) => { values[letter.charCodeAt(0)] = value; });
    const missing = (5 - (text.length % 5)) % 5;
    const bytes = new DataView(new ArrayBuffer(((text.length + missing) / 5) * 4));
    for (let from = 0, to = 0; from < text.length; from += 5, to += 4) {
      let four = 0;
      for (let at = from; at < from + 5; at += 1) {
        four = four * 85 + (at < text.length ? values[text.charCodeAt(at)] : 84);
      }
      bytes.setUint32(to, four);
    }
    return new Uint8Array(bytes.buffer, 0, bytes.byteLength - missing);
  }

  async function inflate(id) {
    const bytes = bytesOf(document.getElementById(id).textContent);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  /** The same promise each time. */
  const once = (make) => { let made; return () => (made ||= make()); };
  const specs = once(async () => JSON.parse(await inflate("gpuprof-charts")));
  const startPlotly = once(async () => {
    const script = document.createElement("script");
    // The page's policy names the hash of this text.
    script.textContent = await inflate("gpuprof-plotly");
    document.head.append(script);
  });

  // ---------------------------------------------------------------- Plotly

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const seriesColour = (index, reference) => colour(reference ? "reference" : `series-${(index % COLOURS) + 1}`);
  // Plotly reads a small HTML in its texts; kernel names and reasons are plain text.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const LETTER_PX = 7;
  /** A text on as many lines as a window of this width needs; Plotly would cut it off. */
  function wrapped(text) {
    const most = Math.max(20, (Math.min(innerWidth, 1000) - 220) / LETTER_PX);
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length >= most) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines.map(plain).join("<br>");
  }

  const axis = (title, more) => ({
    title: { text: wrapped(title) }, gridcolor: colour("rule"), linecolor: colour("rule"), zeroline: false, automargin: true, ...more,
  });

  function layout(uirevision, height, more) {
    return {
      height,
      margin: { l: 50, r: 16, t: 60, b: 40 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("soft"), activecolor: colour("ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") },
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("rule"), font: { color: colour("ink") }, align: "left" },
      hovermode: "closest",
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom" },
      // What the reader zoomed, added or removed stays so when a change of theme draws anew.
      uirevision,
      ...more,
    };
  }

  function ladder(spec, choice) {
    const metric = spec.metrics[choice];
    const drawn = spec.rows.map((row, index) => ({ row, bar: metric.bars[index] })).filter(({ bar }) => bar);
    const names = drawn.map(({ row }) => plain(row.name));
    const marked = drawn.filter(({ bar }) => bar.mark);
    const type = metric.logarithmic ? "log" : "linear";
    return {
      traces: [
        {
          type: "bar", orientation: "h", showlegend: false, y: names, x: drawn.map(({ bar }) => bar.value), textposition: "none",
          marker: { color: drawn.map(({ row }) => colour(row.reference || row.ceiling ? "reference" : row.fastest ? "accent-strong" : "accent")) },
          error_x: {
            type: "data", visible: drawn.some(({ bar }) => bar.high > bar.low), symmetric: false, color: colour("ink"), thickness: 1.2, width: 3,
            array: drawn.map(({ bar }) => bar.high - bar.value), arrayminus: drawn.map(({ bar }) => bar.value - bar.low),
          },
          hovertext: drawn.map(({ row, bar }) => `<b>${plain(row.name)}</b>  ${plain(row.shape)}<br>${plain(bar.text)}`),
          hovertemplate: "%{hovertext}<extra></extra>",
        },
        {
          type: "scatter", mode: "markers", y: marked.map(({ row }) => plain(row.name)), x: marked.map(({ bar }) => bar.mark),
          marker: { symbol: "line-ns-open", size: 16, color: colour("bad"), line: { width: 2 } }, hoverinfo: "skip", showlegend: false,
        },
        ...metric.lines.map((line, index) => ({
          type: "scatter", mode: "lines", name: plain(line.label), x: [line.value, line.value], y: [names[0], names[names.length - 1]],
          line: { color: colour("faint"), width: 1.4, dash: DASHES[1 + index % 2] }, hoverinfo: "name",
        })),
      ],
      layout: layout(choice, 120 + 24 * drawn.length, {
        showlegend: true,
        xaxis: axis(metric.axis, { type }),
        yaxis: axis("", { autorange: "reversed" }),
      }),
    };
  }

  function scaling(spec, choice) {
    return {
      traces: spec.series.map((series) => ({
        type: "scatter", mode: "lines+markers", name: plain(series.name), visible: series.shown || "legendonly", x: series.x, y: series.y,
        line: {
          color: seriesColour(series.look, series.reference), width: 1.8,
          dash: series.reference ? "dash" : DASHES[Math.floor(series.look / COLOURS) % DASHES.length],
        },
        marker: { size: 8, symbol: series.reference ? "x" : SHAPES[series.look % SHAPES.length] },
        error_y: { type: "data", symmetric: false, array: series.up, arrayminus: series.down, thickness: 1, width: 3 },
        hovertext: series.text.map((text) => `<b>${plain(series.name)}</b><br>${plain(text)}`),
        hovertemplate: "%{hovertext}<extra></extra>",
      })),
      layout: layout(choice, 540, {
        xaxis: axis("problem size (logarithmic)", {
          type: "log", tickvals: spec.ticks.map(([edge]) => edge), ticktext: spec.ticks.map(([, label]) => plain(label)),
        }),
        yaxis: axis(`${spec.unit}, cold median; whiskers p05–p95`, choice === 1 ? { type: "log" } : { rangemode: "tozero" }),
      }),
    };
  }

  function roofline(spec, choice) {
    const level = spec.levels[choice];
    const kernels = [...new Set(level.points.map((point) => point.kernel))];
    const places = level.points.map((point) => point.x);
    const [least, most] = [Math.min(...places) / 10, 3 * Math.max(...places, ...level.roofs.map((roof) => spec.peak.value / roof.gbps))];
    const roofs = level.roofs.map((roof) => ({
      type: "scatter", mode: "lines", name: plain(roof.label), hoverinfo: "name",
      x: [least, spec.peak.value / roof.gbps, most], y: [least * roof.gbps, spec.peak.value, spec.peak.value],
      line: { color: colour(roof.measured ? "faint" : "ink"), width: 1.4, dash: roof.measured ? "dash" : "solid" },
    }));
    const points = kernels.map((kernel, index) => {
      const own = level.points.filter((point) => point.kernel === kernel);
      return {
        type: "scatter", mode: "markers", name: plain(kernel), x: own.map((point) => point.x), y: own.map((point) => point.y),
        marker: {
          size: own.map((point) => (point.last ? 11 : 7)), opacity: own.map((point) => (point.last ? 1 : 0.5)),
          color: seriesColour(index, own[0].reference), symbol: own[0].reference ? "x" : SHAPES[index % SHAPES.length],
        },
        hovertext: own.map((point) => `<b>${plain(kernel)}</b><br>${plain(point.size)}: ${plain(point.text)}<br>${plain(point.intensity)}`),
        hovertemplate: "%{hovertext}<extra></extra>",
      };
    });
    return {
      traces: [...roofs, ...points],
      layout: layout(choice, 620, {
        xaxis: axis(`arithmetic intensity, FLOP per byte: ${level.label}`, { type: "log" }),
        yaxis: axis("GFLOP/s", { type: "log" }),
      }),
    };
  }

  const BUILDERS = { ladder, scaling, roofline };

  // ---------------------------------------------------------------- choosing and looking closer

  const chosen = (chart) => Number(chart.querySelector("[data-drawing][aria-pressed=true]")?.dataset.drawing || 0);
  const isOpen = (chart) => !chart.querySelector(".closer").hidden;

  async function draw(chart) {
    const [spec] = await Promise.all([specs().then((all) => all[chart.dataset.chart]), startPlotly()]);
    const built = BUILDERS[spec.kind](spec, chosen(chart));
    return Plotly.react(chart.querySelector(".closer"), built.traces, built.layout, CONFIG);
  }

  /** Draws anew what Plotly drew, in the colours of now. */
  const drawAll = (root = document) => root.querySelectorAll(".chart").forEach((chart) => isOpen(chart) && draw(chart));

  async function choose(chart, button) {
    chart.querySelectorAll("[data-drawing]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    const all = await specs();
    // The reader may have chosen again while this was inflated.
    chart.querySelector(".drawing").innerHTML = all[chart.dataset.chart].drawings[chosen(chart)];
    if (isOpen(chart)) await draw(chart);
  }

  async function lookCloser(chart, button) {
    const [drawing, closer] = [chart.querySelector(".drawing"), chart.querySelector(".closer")];
    const opening = closer.hidden;
    button.setAttribute("aria-pressed", String(opening));
    button.textContent = opening ? "Back to the drawing" : "Look closer";
    closer.hidden = !opening;
    drawing.hidden = opening;
    if (!opening) return;
    button.disabled = true;
    try {
      await draw(chart);
    } catch (error) {
      closer.textContent = `This browser cannot start Plotly from this page: ${error.message || error}`;
      drawing.hidden = false;
    } finally {
      button.disabled = false;
    }
  }

  // A browser that cannot inflate still shows every chart as it was drawn.
  if (!("DecompressionStream" in window)) document.querySelectorAll(".chart-tools").forEach((tools) => tools.remove());

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".chart-tools button");
    if (!button) return;
    const chart = button.closest(".chart");
    if (button.matches(".closer-button")) lookCloser(chart, button);
    else choose(chart, button);
  });

  return { drawAll, inflate };
})();
