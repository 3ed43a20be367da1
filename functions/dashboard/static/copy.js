// Buttons that copy the text of an element: `data-copy` is its id. Without scripts, they stay hidden.
(() => {
  "use strict";

  const SHOWN_MS = 2000;

  const select = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  };

  for (const button of document.querySelectorAll("button[data-copy]")) {
    const label = button.textContent;
    button.hidden = false;
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      const named = document.getElementById(button.dataset.copy);
      const element = named.querySelector("code") ?? named;
      try {
        await navigator.clipboard.writeText(element.textContent);
        button.textContent = "Copied";
      } catch {
        select(element);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => {
        button.textContent = label;
      }, SHOWN_MS);
    });
  }
})();
