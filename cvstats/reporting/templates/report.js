// Sort a table by the column whose head is clicked; a second click turns the order.
for (const table of document.querySelectorAll(".wide table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const read = (row, at) => {
    const text = row.cells[at].textContent.trim().replace(/[\u2212\u2013]/g, "-").replace(/,/g, "");
    const number = parseFloat(text.replace(/^</, "").replace("\u221e", "1e999"));
    return heads[at].classList.contains("num") ? (isNaN(number) ? Infinity : number) : text;
  };
  if (body.rows.length < 2) continue;
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, two) => {
        const a = read(one, at), b = read(two, at);
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
}
