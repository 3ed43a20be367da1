// Closes an open menu with Escape, and when the focus or a click leaves it. Without scripts, its summary closes it.
(() => {
  "use strict";

  const close = (menu, returnsFocus) => {
    if (!menu.open) return;
    menu.open = false;
    if (returnsFocus) menu.querySelector("summary").focus();
  };
  const closeAllBut = (target) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(target)) close(menu, false);
    }
  };

  document.addEventListener("click", (event) => closeAllBut(event.target));
  document.addEventListener("focusin", (event) => closeAllBut(event.target));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) close(menu, menu.contains(document.activeElement));
  });
})();
