// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// What stands in closed parts of the page becomes elements when they are opened, and links find it there.

(() => {
  const LAZY = ":scope > noscript.lazy";

  /** Turns the text of a part into elements. A browser without scripts did so when it read the page. */
  function build(part) {
    const held = part.querySelector(LAZY);
    if (!held) return;
    const parsed = document.createElement("template");
    parsed.innerHTML = held.textContent;
    held.replaceWith(parsed.content);
    gpuprof.enhanceTables(part);
    gpuprof.highlight(part);
    part.querySelectorAll("details[open]").forEach(build);
  }

  function open(part) {
    build(part);
    part.open = true;
  }

  // Toggle events do not bubble, but they can be caught on their way down.
  document.addEventListener("toggle", (event) => {
    if (event.target instanceof HTMLDetailsElement && event.target.open) build(event.target);
  }, true);
  document.querySelectorAll("details[open]").forEach(build);

  /** The element of an id; where it stands in a part that was never opened, that part is built. */
  function find(id) {
    const known = document.getElementById(id);
    if (known) return known;
    const mark = `id="${id}"`;
    const holder = [...document.querySelectorAll("noscript.lazy")].find((held) => held.textContent.includes(mark));
    if (!holder) return null;
    open(holder.parentElement);
    return find(id);
  }

  /** Opens whatever hides the target of the address, and goes there. */
  function reveal() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && find(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part instanceof HTMLDetailsElement) open(part);
      if (part.matches(".panel[hidden]")) part.dispatchEvent(new CustomEvent("gpuprof:show"));
    }
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  // A link to where the address points already changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash && !event.defaultPrevented) reveal();
  });
  reveal();

  // ---------------------------------------------------------------- where the reader is

  const links = [...document.querySelectorAll(".contents a")];
  const parts = new Map(links.map((link) => [document.getElementById(link.hash.slice(1)), link]));
  const seen = new Set();
  const watcher = new IntersectionObserver((entries) => {
    entries.forEach((entry) => { (entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target)); });
    const current = [...parts.keys()].find((part) => seen.has(part));
    links.forEach((link) => link.removeAttribute("aria-current"));
    if (current) parts.get(current).setAttribute("aria-current", "true");
  }, { rootMargin: "-60px 0px -55% 0px" });
  parts.forEach((_, part) => { if (part && part !== document.body) watcher.observe(part); });
})();
