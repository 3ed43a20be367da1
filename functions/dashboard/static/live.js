// Enhances the pages, which work without scripts: a marked part of a page is reloaded until it stops changing.
//
// <section data-refresh="2"> is replaced every 2 seconds with the section of the same id in a fresh copy of the page,
// until that copy no longer has the attribute. Focus stays where it was, and hidden pages wait. With data-leads-on, the
// page follows a redirect once its address leads to another one.
(() => {
  "use strict";

  const refresh = async (part) => {
    const seconds = Number(part.dataset.refresh);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => refresh(part), { once: true });
      return;
    }
    let next = null;
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "manual" });
      if (response.type === "opaqueredirect") {
        // Without data-leads-on, the session has ended, and the page stays as it is.
        if ("leadsOn" in part.dataset) {
          location.reload();
          return;
        }
      } else if (response.ok) {
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        next = fresh.getElementById(part.id);
      } else if (response.status !== 429 && response.status < 500) {
        return;
      }
    } catch {
      // Offline: the page stays as it is, and the next attempt may succeed.
    }
    if (next === null) {
      part.dataset.refresh = Math.min(60, seconds * 2);
      refresh(part);
      return;
    }
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    part.replaceWith(next);
    if (focused) document.getElementById(focused)?.focus();
    if (next.dataset.refresh) refresh(next);
  };

  for (const part of document.querySelectorAll("[data-refresh][id]")) refresh(part);
})();
