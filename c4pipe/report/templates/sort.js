// Sorts a table of languages by the head that is clicked: numbers from the largest, texts from A; the next click turns it.
for (const table of document.querySelectorAll("table.languages")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const up = head.classList.contains("n") ? head.ariaSort === "descending" : head.ariaSort !== "ascending";
      const value = row => {
        const cell = row.cells[column];
        return cell.dataset.v ? Number(cell.dataset.v) : cell.textContent;
      };
      const before = (a, b) => typeof a === "string" ? a.localeCompare(b) : a - b;
      const empty = row => value(row) === "";
      const rows = [...body.rows].sort((a, b) =>
        empty(a) - empty(b) || (up ? 1 : -1) * before(value(a), value(b)));
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    };
  });
}
