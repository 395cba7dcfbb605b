// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// Tables that sort by the raw values behind their texts, and show the rows that hold what is typed.

gpuprof.enhanceTables = (() => {
  const FEWEST_TO_FILTER = 6;

  function sortRows(table, column, ascending) {
    const body = table.tBodies[0];
    const key = (row) => row.cells[column]?.dataset.sort;
    const sorted = [...body.rows].sort((first, second) => {
      const [a, b] = [key(first), key(second)];
      // What was not measured stays at the end in both directions.
      if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
      const [x, y] = [Number(a), Number(b)];
      const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
      return ascending ? order : -order;
    });
    body.append(...sorted);
  }

  function addSorting(table) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const rows = [...table.tBodies[0].rows];
    heads.forEach((head, column) => {
      if (!rows.some((row) => row.cells[column]?.dataset.sort !== undefined)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.setAttribute("aria-label", `Sort by ${head.textContent.trim()}`);
      head.append(" ", button);
      button.addEventListener("click", () => {
        const ascending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortRows(table, column, ascending);
      });
    });
  }

  // ---------------------------------------------------------------- filtering

  function filterRows(table, text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [...table.tBodies[0].rows];
    let shown = 0;
    all.forEach((row) => {
      const said = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => said.includes(word));
      shown += !row.hidden;
    });
    return words.length ? `${shown} of ${all.length} rows` : "";
  }

  function addFilter(table) {
    if (table.tBodies[0].rows.length < FEWEST_TO_FILTER) return;
    const label = document.createElement("label");
    label.className = "filter";
    label.textContent = "Filter rows ";
    const input = document.createElement("input");
    input.type = "search";
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    label.append(input);
    const box = document.createElement("div");
    box.className = "filter-box";
    box.append(label, told);
    table.closest(".scroll").before(box);
    const apply = () => { told.textContent = filterRows(table, input.value); };
    input.addEventListener("input", () => {
      apply();
      // The ladders of one group are the same kernels: what is looked for at one size is looked for at all.
      const others = table.closest(".tabs")?.querySelectorAll(".filter input") ?? [];
      others.forEach((other) => {
        if (other.value === input.value) return;
        other.value = input.value;
        other.dispatchEvent(new Event("input"));
      });
    });
  }

  return (part) => part.querySelectorAll("table.sortable:not(.enhanced)").forEach((table) => {
    table.classList.add("enhanced");
    addSorting(table);
    addFilter(table);
  });
})();

gpuprof.enhanceTables(document);
