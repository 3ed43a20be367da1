// Keyboard shortcuts of the inbox, and the number of selected findings. Without scripts, forms and links do the same.
(() => {
  "use strict";

  const list = document.querySelector(".findings");
  const triage = document.getElementById("triage");
  const decision = document.getElementById("decision");
  const shortcuts = document.getElementById("shortcuts");

  const boxes = () => [...(list?.querySelectorAll("input[name^=item-]") ?? [])];
  const links = () => [...(list?.querySelectorAll("h3 a") ?? [])].filter((link) => link.checkVisibility());
  const current = () => document.activeElement?.closest(".findings li") ?? null;

  // The row that the keyboard was on last, also after a click elsewhere.
  let last = -1;
  const move = (step) => {
    const all = links();
    if (!all.length) return;
    const focused = all.findIndex((link) => link.closest("li") === current());
    last = Math.min(all.length - 1, Math.max(0, (focused < 0 ? last : focused) + step));
    all[last].focus();
    all[last].closest("li").scrollIntoView({ block: "nearest" });
  };

  const all = document.createElement("input");
  const count = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    document.getElementById("chosen").textContent = chosen ? `${chosen} selected` : "";
    all.checked = chosen > 0 && chosen === boxes().length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  if (triage) {
    const label = document.createElement("label");
    label.className = "choose";
    all.type = "checkbox";
    all.setAttribute("aria-label", "Select all findings on this page");
    label.append(all);
    triage.querySelector(".triage").prepend(label);
    all.addEventListener("change", () => {
      for (const box of list.querySelectorAll("input")) box.checked = all.checked;
    });
    // The box of a group selects what is in it. The form names the same findings with and without this.
    triage.addEventListener("change", (event) => {
      const row = event.target.closest("li");
      for (const box of row?.querySelectorAll("li input") ?? []) box.checked = event.target.checked;
      const group = row?.parentElement.closest("li")?.querySelector("input");
      if (group) group.checked = [...row.parentElement.querySelectorAll("input")].every((box) => box.checked);
      count();
    });
    count();
  }

  const decide = (status) => {
    const form = triage ?? decision;
    const button = form?.querySelector(`button[value="${status}"]`);
    if (!button) return;
    if (triage && !boxes().some((box) => box.checked)) {
      const box = current()?.querySelector(".choose input");
      if (!box) return;
      box.checked = true;
    }
    form.requestSubmit(button);
  };

  const select = () => {
    current()?.querySelector(".choose input")?.click();
  };

  const showEvidence = () => {
    const evidence = document.getElementById("evidence");
    if (evidence) evidence.focus();
    else if (current()) location.href = `${current().querySelector("h3 a").href}#evidence`;
  };

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    x: select,
    e: showEvidence,
    a: () => decide("accepted"),
    d: () => decide("dismissed"),
    r: () => decide("resolved"),
    o: () => decide("open"),
    u: () => document.querySelector(".outcome button")?.click(),
    b: () => document.querySelector("[data-back]")?.click(),
    "/": () => document.getElementById("filter-text")?.focus(),
    "?": () => {
      if (!shortcuts) return;
      shortcuts.open = !shortcuts.open;
      shortcuts.querySelector("summary").focus();
    },
  };

  if (triage || decision || document.getElementById("filter-text")) {
    if (shortcuts) shortcuts.hidden = false;
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      const typing = event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
      if (typing) {
        if (event.key === "Escape") typing.blur();
        return;
      }
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
  }
})();
