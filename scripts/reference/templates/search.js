// Adds a field that searches the guides and the operations. Without scripts, the page has no field, and lists all of them.
const label = document.createElement("label");
const field = document.createElement("input");
const found = document.createElement("p");
label.textContent = "Search guides and operations";
field.type = "search";
found.role = "status";
label.append(field);
document.getElementById("search").append(label, found);

field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const section of document.querySelectorAll("main section")) {
    const heading = section.querySelector("h2").textContent;
    let shown = 0;
    for (const item of section.querySelectorAll("li")) {
      const text = `${heading} ${item.textContent}`.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      shown += !item.hidden;
    }
    section.hidden = !shown;
    count += shown;
  }
  found.textContent = words.length ? `${count} ${count === 1 ? "result" : "results"}` : "";
});
