// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// What stands in closed parts of the page becomes elements when they are opened, and links find it there.

(() => {
  let inflated;
  /** The texts of all parts, inflated when the first one is asked for. */
  const texts = () => (inflated ||= gpuprof.inflate("gpuprof-parts").then(JSON.parse).then((kinds) =>
    kinds[0].map((_, part) => kinds.map((pieces) => pieces[part]).join(""))));

  /** Turns the text that a part of the page stands for into elements. */
  async function build(details) {
    const place = details.querySelector(":scope > .kept");
    if (!place) return;
    const text = (await texts())[Number(place.dataset.kept)];
    if (!place.isConnected) return;
    const parsed = document.createElement("template");
    parsed.innerHTML = text;
    place.replaceWith(parsed.content);
    gpuprof.enhanceTables(details);
    gpuprof.highlight(details);
    await Promise.all([...details.querySelectorAll("details[open]")].map(build));
  }

  async function open(details) {
    await build(details);
    details.open = true;
  }

  // Toggle events do not bubble, but they can be caught on their way down.
  document.addEventListener("toggle", (event) => {
    if (event.target instanceof HTMLDetailsElement && event.target.open) build(event.target);
  }, true);
  document.querySelectorAll("details[open]").forEach(build);

  /** The element of an id; where it stands in a part that was never opened, that part is built. */
  async function find(id) {
    const known = document.getElementById(id);
    if (known) return known;
    const mark = `id="${id}"`;
    const number = (await texts()).findIndex((text) => text.includes(mark));
    const place = document.querySelector(`.kept[data-kept="${number}"]`);
    if (!place) return null;
    await open(place.parentElement);
    return document.getElementById(id);
  }

  /** Opens whatever hides the target of the address, and goes there. */
  async function reveal() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && await find(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part instanceof HTMLDetailsElement) await open(part);
      if (part.matches(".panel[hidden]")) part.dispatchEvent(new CustomEvent("gpuprof:show"));
    }
    // A line of code is looked at with the lines around it, and with its number.
    const listing = target.closest(".source");
    target.scrollIntoView({ block: listing ? "center" : "start" });
    if (listing) listing.scrollLeft = 0;
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
