// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// A link to a definition or a reason shows it where it stands; without scripts it leads to the glossary.

(() => {
  if (!HTMLElement.prototype.showPopover) return;
  const box = document.createElement("div");
  box.id = "definition";
  box.popover = "auto";
  box.setAttribute("role", "dialog");
  box.tabIndex = -1;
  document.body.append(box);
  let asked = null;

  function fill(entry) {
    const [label, meaning] = [entry.querySelector("dt"), entry.querySelector("dd")];
    const [word, group] = label ? [label.firstChild.data.trim(), label.children[0]?.textContent] : ["Not measured"];
    box.setAttribute("aria-label", word);
    const head = document.createElement("strong");
    head.textContent = group ? `${word} (${group})` : word;
    const text = document.createElement("p");
    text.textContent = (meaning || entry).textContent;
    box.replaceChildren(head, text);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.term, a.missing");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const entry = document.getElementById(link.hash.slice(1));
    if (!entry) return;
    event.preventDefault();
    fill(entry);
    asked = link;
    box.showPopover();
    const near = link.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(near.left, width - box.offsetWidth - 8));
    const below = near.bottom + 6;
    const fits = below + box.offsetHeight < window.innerHeight;
    box.style.left = `${left}px`;
    box.style.top = `${fits ? below : Math.max(8, near.top - box.offsetHeight - 6)}px`;
    box.focus({ preventScroll: true });
  });
  box.addEventListener("toggle", (event) => {
    // Whoever closed it with Escape goes on where they asked.
    if (event.newState === "closed" && asked && [document.body, box].includes(document.activeElement)) {
      asked.focus({ preventScroll: true });
    }
  });
})();
