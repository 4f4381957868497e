document.documentElement.classList.add("js");
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? (cell.dataset.v === "" ? NaN : Number(cell.dataset.v)) : cell.textContent.trim();
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "descending" ||
      (column === 0 && head.getAttribute("aria-sort") !== "ascending");
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const compare = (a, b) => {
      const x = value(a, column), y = value(b, column);
      if (typeof x === "string") return (up ? 1 : -1) * x.localeCompare(y, undefined, { numeric: true });
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);  // unknown values come last
      return (up ? 1 : -1) * (x - y);
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  }));
}
