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
    script.remove();
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

  /** An axis as a chart describes it; `room` of its span stays free beyond its end. */
  const described = (held, room = 0, more = {}) => {
    const ends = [held.low, held.high].map((end) => (held.logarithmic ? Math.log10(end) : end));
    return axis(held.title, {
      type: held.logarithmic ? "log" : "linear", range: [ends[0], ends[1] + room * (ends[1] - ends[0])],
      ...(held.ticks && { tickvals: held.ticks.map(([value]) => value), ticktext: held.ticks.map(([, label]) => plain(label)) }),
      ...more,
    });
  };

  function bars(spec, choice, chart) {
    const held = spec.choices[choice];
    // The rows that the style sheet shows of the drawing.
    const unfolded = chart.querySelector(":is(.by-rung, .all-rows):checked");
    const all = spec.rows.map((row, index) => ({ row, bar: held.bars[index] })).filter(({ row }) => unfolded || !row.folded);
    if (chart.querySelector(".by-rung")?.checked) all.sort((a, b) => a.row.rung - b.row.rung);
    const names = all.map(({ row }) => plain(row.name));
    const with_ = all.filter(({ bar }) => bar);
    const marked = with_.filter(({ bar }) => bar.mark);
    const made = (held.parts || []).map((name, part) => ({
      type: "bar", orientation: "h", name: plain(name), y: names, marker: { color: seriesColour(part, false) },
      x: all.map(({ bar }) => bar?.parts[part] ?? 0),
      base: all.map(({ bar }) => (bar?.parts || []).slice(0, part).reduce((sum, one) => sum + one, 0)),
      customdata: all.map(({ row }) => row.anchor), hovertemplate: `${plain(name)}: %{x:.3g}<extra></extra>`,
    }));
    const said = ({ row, bar }) => (bar ? bar[innerWidth > 800 ? "text" : "short"] : row.usable ? held.without : `${row.status}${row.reason && ": "}${row.reason.slice(0, 90)}`);
    // A label takes at most half of the span, from where its bar ends.
    const high = Math.max(held.x.high, ...with_.map(({ bar }) => bar.end)), span = chart.clientWidth - 180;
    const ends = with_.map((one) => one.bar.end / high / Math.max(0.5, 1 - (LETTER_PX * said(one).length) / span));
    return {
      traces: [
        {
          type: "bar", orientation: "h", showlegend: false, y: names, x: all.map(({ bar }) => (bar ? bar.value : held.x.low)),
          customdata: all.map(({ row }) => row.anchor),
          marker: { color: all.map(({ row }) => colour(row.reference || row.ceiling ? "reference" : row.fastest ? "accent-strong" : "accent")) },
          error_x: {
            type: "data", visible: with_.some(({ bar }) => bar.high > bar.low), symmetric: false, color: colour("ink"), thickness: 1.2, width: 3,
            array: all.map(({ bar }) => (bar ? bar.high - bar.value : 0)), arrayminus: all.map(({ bar }) => (bar ? bar.value - bar.low : 0)),
          },
          hovertext: all.map(({ row, bar }) => `<b>${plain(row.name)}</b>  ${plain(row.shape)}<br>${bar ? plain(bar.text) : wrapped(`${row.status} ${row.reason}`)}`),
          hovertemplate: "%{hovertext}<extra></extra>",
        },
        ...made,
        ...held.lines.map((line, index) => ({
          type: "scatter", mode: "lines", name: plain(line.value > held.x.high * (1 + 1e-9) ? `→ beyond this axis: ${line.label}` : line.label),
          x: [line.value, line.value], y: [names[0], names[names.length - 1]],
          line: { color: colour("faint"), width: 1.4, dash: DASHES[1 + index % 2] }, hoverinfo: "name",
        })),
        {
          // A label stands after the last thing drawn of its bar.
          type: "scatter", mode: "text", y: names, x: all.map(({ bar }) => (bar ? bar.end : held.x.low)),
          text: all.map((one) => `\u00a0${plain(said(one))}`), textposition: "middle right", cliponaxis: false,
          textfont: { color: all.map(({ row, bar }) => colour(bar ? "ink" : row.is_fault ? "bad" : "soft")) },
          hoverinfo: "skip", showlegend: false,
        },
        {
          type: "scatter", mode: "markers", y: marked.map(({ row }) => plain(row.name)), x: marked.map(({ bar }) => bar.mark),
          marker: { symbol: "line-ns-open", size: 16, color: colour("bad"), line: { width: 2 } }, hoverinfo: "skip", showlegend: false,
        },
      ],
      layout: layout(choice, 120 + 24 * all.length, {
        showlegend: true, barmode: "overlay",
        xaxis: described({ ...held.x, high }, Math.max(1, ...ends) - 1),
        yaxis: axis("", { autorange: "reversed" }),
      }),
    };
  }

  function lines(spec, choice) {
    const held = spec.choices[choice];
    const roofs = (held.roofs || []).map((roof) => ({
      type: "scatter", mode: "lines", name: plain(roof.name), hoverinfo: "name", x: roof.x, y: roof.y,
      line: { color: colour(roof.line === "roof" ? "ink" : "faint"), width: 1.4, dash: roof.line === "roof" ? "solid" : "dash" },
    }));
    const series = held.series.map((item) => {
      const symbol = item.reference ? "x" : SHAPES[item.look % SHAPES.length];
      const last = item.x.length - 1;
      return {
        type: "scatter", mode: `markers${item.line ? "+lines" : ""}${item.last ? "+text" : ""}`, name: plain(item.name),
        visible: item.shown || "legendonly", x: item.x, y: item.y, customdata: item.x.map(() => item.anchor),
        text: item.x.map((_, index) => (item.last && index === last ? plain(item.name) : "")), textposition: "top center",
        line: { color: seriesColour(item.look, item.reference), width: 1.8, dash: item.line === "dashed" ? "dash" : DASHES[Number(item.line?.slice(-1))] },
        marker: {
          size: item.x.map((_, index) => (item.last && index === last ? 11 : 7)), color: seriesColour(item.look, item.reference),
          symbol: item.open ? `${symbol}-open` : symbol,
        },
        error_y: { type: "data", visible: Boolean(item.up), symmetric: false, array: item.up, arrayminus: item.down, thickness: 1, width: 3 },
        hovertext: item.text.map((text) => `<b>${plain(item.name)}</b><br>${plain(text)}`),
        hovertemplate: "%{hovertext}<extra></extra>",
      };
    });
    return {
      traces: [...roofs, ...series],
      layout: layout(choice, spec.height + 140, {
        showlegend: true,
        // Beside the plane there is room for the kernels that are not drawn yet.
        ...(innerWidth > 800 && { legend: { x: 1.02, y: 1 } }),
        xaxis: described(held.x),
        yaxis: described(held.y),
      }),
    };
  }

  const BUILDERS = { bars, lines };

  // ---------------------------------------------------------------- choosing and looking closer

  const chosen = (chart) => Number(chart.querySelector("[data-drawing][aria-pressed=true]")?.dataset.drawing || 0);
  const isOpen = (chart) => !chart.querySelector(".closer").hidden;

  async function draw(chart) {
    const spec = (await start())[0][chart.dataset.chart];
    const built = BUILDERS[spec.kind](spec, chosen(chart), chart);
    const closer = chart.querySelector(".closer");
    await Plotly.react(closer, built.traces, built.layout, CONFIG);
    // As in the drawing, what stands for a kernel leads to it.
    closer.removeAllListeners("plotly_click");
    closer.on("plotly_click", ({ points: [point] }) => { if (point.customdata) location.hash = point.customdata; });
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

  // Plotly takes a moment to start: it begins when the page is drawn and the reader does nothing yet.
  const start = () => Promise.all([specs(), startPlotly()]);
  addEventListener("load", () => (window.requestIdleCallback || setTimeout)(() => start().catch(() => {})));
  document.addEventListener("change", (event) => {
    const chart = event.target.closest(".chart");
    if (chart && event.target.matches(".by-rung, .all-rows") && isOpen(chart)) draw(chart);
  });

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
  if (!("DecompressionStream" in window)) document.querySelectorAll(".chart-tools .needs-script").forEach((tool) => tool.remove());

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".chart-tools button");
    if (!button) return;
    const chart = button.closest(".chart");
    if (button.matches(".closer-button")) lookCloser(chart, button);
    else choose(chart, button);
  });

  return { drawAll, inflate };
})();
