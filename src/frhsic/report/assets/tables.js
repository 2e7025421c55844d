/* Tables that sort by column and leave as CSV. */
const Tables = (() => {
  const numeric = (text) => text !== "" && Number.isFinite(Number(text));

  /* A spreadsheet runs a cell that starts like a formula; a quote in front makes it text. Plain numbers stay numbers. */
  function guarded(text) {
    return /^[=+\-@\t\r\n]/.test(text) && !numeric(text) ? "'" + text : text;
  }

  function field(text) {
    const safe = guarded(text);
    return /[",\r\n]/.test(safe) || safe !== safe.trim() ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  }

  function text(cell) {
    if (cell.dataset.csv !== undefined) return cell.dataset.csv;
    if (cell.dataset.value !== undefined) return cell.dataset.value;
    return Array.from(cell.childNodes).filter((n) => !(n.getAttribute && n.getAttribute("aria-hidden"))).map((n) => n.textContent).join("").replace(/\s+/g, " ").trim();
  }

  function csv(table) {
    const lines = [Array.from(table.tHead.rows[0].cells, (cell) => field(cell.textContent.trim())).join(",")];
    for (const row of table.tBodies[0].rows) lines.push(Array.from(row.cells, (cell) => field(text(cell))).join(","));
    return lines.join("\r\n") + "\r\n";
  }

  function save(content, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    document.body.appendChild(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const slug = (name) => name.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").toLowerCase().slice(0, 60) || "table";

  function sort(table, column, direction) {
    const body = table.tBodies[0], rows = Array.from(body.rows);
    if (!direction) return rows.sort((a, b) => a.dataset.order - b.dataset.order).forEach((row) => body.appendChild(row));
    const key = (row) => { const cell = row.cells[column]; return cell.dataset.value !== undefined ? Number(cell.dataset.value) : text(cell); };
    rows.sort((a, b) => {
      const p = key(a), q = key(b), empty = (v) => v === "–" || v === "";
      if (empty(p) || empty(q)) return empty(p) - empty(q);
      if (typeof p !== typeof q) return typeof p === "number" ? -1 : 1;
      return direction * (typeof p === "number" ? p - q : p.localeCompare(q));
    });
    rows.forEach((row) => body.appendChild(row));
  }

  function enhance(holder, live) {
    const table = holder.querySelector("table");
    Array.from(table.tBodies[0].rows).forEach((row, i) => (row.dataset.order = i));
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      head.setAttribute("aria-sort", "none");
      head.querySelector("button").addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        sort(table, column, { ascending: 1, descending: -1, none: 0 }[next]);
        live.textContent = next === "none" ? "In the original order" : "Sorted by " + head.textContent.trim() + ", " + next;
      });
    });
    holder.querySelector(".csv").addEventListener("click", () => save("\ufeff" + csv(table), "text/csv;charset=utf-8", slug(holder.dataset.name) + ".csv"));
  }

  return { enhance, save, csv, guarded };
})();
