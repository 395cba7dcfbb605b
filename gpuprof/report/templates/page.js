// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// What the page does beyond its charts: theme, size selectors, sorting, printing.

(() => {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("scripted");

  // ---------------------------------------------------------------- theme

  // A browser may refuse storage to a local file; the choice then lasts as long as the page.
  const stored = {
    read() { try { return localStorage.getItem("gpuprof-theme"); } catch { return null; } },
    write(value) { try { localStorage.setItem("gpuprof-theme", value); } catch { /* the choice is not kept */ } },
  };

  function applyTheme(choice) {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
    root.dataset.effective = choice === "auto" ? (prefersDark.matches ? "dark" : "light") : choice;
    document.querySelectorAll("[data-theme-choice]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
    });
    gpuprof.drawAll();
  }

  const currentTheme = () => root.dataset.theme || "auto";
  document.querySelectorAll("[data-theme-choice]").forEach((button) => {
    button.addEventListener("click", () => {
      stored.write(button.dataset.themeChoice);
      applyTheme(button.dataset.themeChoice);
    });
  });
  prefersDark.addEventListener("change", () => applyTheme(currentTheme()));

  // ---------------------------------------------------------------- choosers

  /** A row of buttons of which one is pressed. */
  function chooser(holder, title, labels, pressed, choose) {
    const name = document.createElement("span");
    name.textContent = title;
    const group = document.createElement("div");
    group.className = "choice";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", title);
    labels.forEach((label, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-pressed", String(index === pressed));
      button.addEventListener("click", () => {
        [...group.children].forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        choose(index);
      });
      group.append(button);
    });
    const box = document.createElement("div");
    box.append(name, group);
    holder.append(box);
  }

  document.querySelectorAll(".tabs").forEach((tabs) => {
    const panels = [...tabs.querySelectorAll(":scope > .panel")];
    const show = (index) => {
      panels.forEach((panel, at) => { panel.hidden = at !== index; });
    };
    if (panels.length < 2) return;
    const opened = Number(tabs.dataset.open);
    chooser(tabs.querySelector(":scope > .choosers"), tabs.dataset.tabs, panels.map((panel) => panel.dataset.label), opened, show);
    show(opened);
  });

  // ---------------------------------------------------------------- sorting

  function sortRows(table, column, ascending) {
    const body = table.tBodies[0];
    const key = (row) => row.cells[column].dataset.sort;
    const rows = [...body.rows].sort((first, second) => {
      const [a, b] = [key(first), key(second)];
      // What was not measured stays at the end in both directions.
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
      const [x, y] = [Number(a), Number(b)];
      const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
      return ascending ? order : -order;
    });
    body.append(...rows);
  }

  document.querySelectorAll("table.sortable").forEach((table) => {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = 0;
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortRows(table, column, ascending);
      });
    });
  });

  // ---------------------------------------------------------------- arriving at a kernel, printing

  function reveal() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const details = target.matches("details") ? target : target.querySelector(".source-details");
    if (details) details.open = true;
    // A line of source may stand within several that are closed.
    for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  }
  window.addEventListener("hashchange", reveal);

  let hidden = [];
  let themeBefore = "auto";
  window.addEventListener("beforeprint", () => {
    hidden = [...document.querySelectorAll(".panel[hidden]")];
    hidden.forEach((panel) => { panel.hidden = false; });
    themeBefore = currentTheme();
    applyTheme("light");
  });
  window.addEventListener("afterprint", () => {
    hidden.forEach((panel) => { panel.hidden = true; });
    applyTheme(themeBefore);
  });

  applyTheme(stored.read() || currentTheme());
  reveal();
})();
