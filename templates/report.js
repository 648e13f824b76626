(() => {
  "use strict";
  const all = (what, where = document) => Array.from(where.querySelectorAll(what));
  const said = document.getElementById("said");

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.s ?? cell.textContent.trim();
    return value === "" ? null : isNaN(value) ? value.toLowerCase() : Number(value);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;
  };
  for (const table of all("table[data-sortable]")) {
    all("thead th button", table).forEach((button) => {
      const head = button.parentElement;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows, (row, at) => ({ row, at, key: keyOf(row, head.cellIndex) }));
        rows.sort((a, b) => {
          if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.at - b.at;
          return (down ? -compare(a.key, b.key) : compare(a.key, b.key)) || a.at - b.at;
        });
        body.append(...rows.map((one) => one.row));
      });
    });
  }

  const rows = all("#trials tbody tr");
  const cells = all("#grid a");
  const kinds = all(".legend button");
  const search = document.getElementById("search");
  const chosen = new Set();
  const apply = () => {
    const text = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = (!chosen.size || chosen.has(row.dataset.k)) && row.cells[0].textContent.toLowerCase().includes(text);
      row.hidden = !fits;
      shown += fits;
    }
    for (const cell of cells) {
      const fits = !chosen.size || all("i", cell).some((one) => chosen.has(one.classList[1]));
      cell.classList.toggle("dim", !fits || !cell.title.toLowerCase().includes(text));
    }
    said.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
  };
  kinds.forEach((button) => button.addEventListener("click", () => {
    const kind = button.dataset.k;
    if (!chosen.delete(kind)) chosen.add(kind);
    button.setAttribute("aria-pressed", String(chosen.has(kind)));
    apply();
  }));
  const clear = () => {
    chosen.clear();
    search.value = "";
    kinds.forEach((button) => button.setAttribute("aria-pressed", "false"));
    apply();
  };
  search.addEventListener("input", apply);
  document.getElementById("clear").addEventListener("click", clear);
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) { clear(); target.scrollIntoView(); }
  });
  all(".tools").forEach((tools) => { tools.hidden = false; });
  kinds.forEach((button) => { button.disabled = false; });
  apply();
})();
