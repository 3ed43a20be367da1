// Reads what a page says about itself: its consent mode, its TCF choice, its links, and the cookies that it declares.
async ({ host }) => {
  const commands = [];
  for (const it of Array.from(window.dataLayer ?? []).slice(0, 2000)) {
    if (it?.[0] === "consent" && typeof it[2] === "object") {
      const signals = Object.entries(it[2]).filter(([, value]) => ["granted", "denied"].includes(value));
      commands.push({ command: String(it[1]), signals: Object.fromEntries(signals) });
    } else if (it?.[0] === "config" || it?.event === "gtm.js") {
      commands.push({ command: "start", signals: {} });
    }
  }
  const tcf = await new Promise((resolve) => {
    if (typeof window.__tcfapi !== "function") return resolve(null);
    setTimeout(() => resolve(null), 500);
    try {
      window.__tcfapi("addEventListener", 2, (it) => resolve(it && {
        cmpId: it.cmpId ?? null, eventStatus: String(it.eventStatus ?? ""), tcString: String(it.tcString ?? "").slice(0, 4000),
      }));
    } catch { resolve(null); }
  });
  const links = [...document.querySelectorAll("a[href]")].map((it) => ({ url: it.href, text: it.innerText.trim().slice(0, 80) }))
    .filter((it) => { try { return new URL(it.url).host === host; } catch { return false; } });
  const rows = [...document.querySelectorAll("tr")].slice(0, 1000)
    .map((row) => [...row.cells].map((it) => it.innerText.trim().slice(0, 200)));
  return {
    commands, tcf, rows, links: links.slice(0, 500), title: document.title.slice(0, 200),
    text: (document.body?.innerText ?? "").slice(0, 3000), asksToSignIn: !!document.querySelector("input[type=password]"),
    length: (document.body?.innerText ?? "").length,
  };
}
