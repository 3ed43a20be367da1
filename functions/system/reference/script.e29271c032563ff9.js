// What the page is better with, and complete without: copying, a filter, and where the reader is.

const contents = document.getElementById("contents");

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const block of document.querySelectorAll(".code")) {
    const caption = block.querySelector("figcaption");
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    const operation = block.closest(".operation")?.querySelector("h3 a");
    const subject = [caption?.textContent, operation?.textContent].filter(Boolean).join(", ") || "this code";
    button.setAttribute("aria-label", `Copy: ${subject}`);
    button.addEventListener("click", async () => {
      let word = "Copied";
      try {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
      } catch {
        word = "Not allowed";
      }
      button.textContent = word;
      announcer.textContent = word;
      setTimeout(() => {
        button.textContent = "Copy";
        announcer.textContent = "";
      }, 2000);
    });
    (caption ?? block).append(button);
  }
}

function addFilter() {
  const input = element("input", {
    type: "search",
    id: "filter",
    placeholder: "Filter operations  /",
    autocomplete: "off",
    spellcheck: false,
  });
  input.setAttribute("aria-label", "Filter the contents");
  const none = element("p", { className: "none", textContent: "Nothing is called that.", hidden: true });
  contents.querySelector(".close-contents").after(input, none);
  const groups = [...contents.querySelectorAll(".group")].map((title) => ({
    title,
    items: [...title.nextElementSibling.children].map((item) => ({
      item,
      text: `${title.textContent} ${item.textContent} ${item.firstElementChild.hash} ${routeOf(item)}`.toLowerCase(),
    })),
  }));
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { title, items } of groups) {
      let left = 0;
      for (const { item, text } of items) {
        item.hidden = !words.every((word) => text.includes(word));
        left += item.hidden ? 0 : 1;
      }
      title.hidden = title.nextElementSibling.hidden = left === 0;
      shown += left;
    }
    none.hidden = shown > 0;
    announcer.textContent = words.length ? `${shown} found` : "";
  });
  input.addEventListener("keydown", (event) => {
    const first = contents.querySelector("li:not([hidden]) a");
    if (event.key === "Enter" && input.value && first) first.click();
    if (event.key === "Escape" && input.value) {
      input.value = "";
      input.dispatchEvent(new Event("input"));
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (getComputedStyle(contents).display === "none") return;
    event.preventDefault();
    input.focus();
  });
}

function routeOf(item) {
  const section = document.getElementById(item.firstElementChild.hash.slice(1));
  return section?.querySelector(".route")?.textContent ?? "";
}

// Closing the contents of a narrow screen leads back to where they were opened.
function returnOnClose() {
  let isOpenedHere = false;
  document.querySelector(".open-contents").addEventListener("click", () => (isOpenedHere = true));
  contents.querySelector(".close-contents").addEventListener("click", (event) => {
    if (!isOpenedHere) return;
    event.preventDefault();
    history.back();
  });
}

function followReader() {
  const links = new Map([...contents.querySelectorAll("li a, .group a")].map((link) => [link.hash.slice(1), link]));
  const places = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  let current = null;
  let isDue = false;
  const mark = () => {
    isDue = false;
    const passed = places.filter((place) => place.getBoundingClientRect().top < 120);
    const link = links.get((passed.at(-1) ?? places[0]).id);
    if (link === current) return;
    current?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "location");
    current = link;
    const { top, bottom } = link.getBoundingClientRect();
    const frame = contents.getBoundingClientRect();
    const isOut = top < frame.top + 60 || bottom > frame.bottom - 40;
    if (isOut && !contents.contains(document.activeElement)) {
      contents.scrollTop += top - frame.top - frame.height / 3;
    }
  };
  const request = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(mark);
  };
  addEventListener("scroll", request, { passive: true });
  addEventListener("resize", request);
  mark();
}

// For browsers whose style sheets cannot open what is folded.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

const announcer = element("p", { className: "hidden" });
announcer.setAttribute("role", "status");
document.querySelector("main").append(announcer);
addCopyButtons();
addFilter();
returnOnClose();
followReader();
