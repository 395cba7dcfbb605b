// SPDX-FileCopyrightText: The gpuprof developers
// SPDX-License-Identifier: Apache-2.0
// The page's own controls: theme, selectors of sizes, printing.

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

  /** A row of buttons of which one is pressed, or a list of many. */
  function chooser(holder, title, labels, pressed, choose) {
    const name = document.createElement("span");
    name.textContent = title;
    const box = document.createElement("div");
    holder.append(box);
    if (labels.length > 12) {
      const list = document.createElement("select");
      list.setAttribute("aria-label", title);
      list.append(...labels.map((label) => new Option(label)));
      list.selectedIndex = pressed;
      list.addEventListener("change", () => choose(list.selectedIndex));
      box.append(name, list);
      return (chosen) => { list.selectedIndex = chosen; choose(chosen); };
    }
    const group = document.createElement("div");
    group.className = "choice";
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", title);
    labels.forEach((label, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-pressed", String(index === pressed));
      button.addEventListener("click", () => press(index));
      group.append(button);
    });
    box.append(name, group);
    function press(chosen) {
      [...group.children].forEach((button, index) => button.setAttribute("aria-pressed", String(index === chosen)));
      choose(chosen);
    }
    return press;
  }

  document.querySelectorAll(".tabs").forEach((tabs) => {
    const panels = [...tabs.querySelectorAll(":scope > .panel")];
    const show = (index) => {
      panels.forEach((panel, at) => { panel.hidden = at !== index; });
    };
    if (panels.length < 2) return;
    const opened = Number(tabs.dataset.open);
    const labels = panels.map((panel) => panel.dataset.label);
    const holder = tabs.querySelector(":scope > .choosers");
    const press = chooser(holder, tabs.dataset.tabs, labels, opened, show);
    panels.forEach((panel, index) => panel.addEventListener("gpuprof:show", () => press(index)));
    show(opened);
  });

  // ---------------------------------------------------------------- printing

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
})();
