/* What happens when the page opens. Pictures and the choice of a limit need no script. */
(() => {
  const report = JSON.parse(document.getElementById("data").textContent), live = document.getElementById("live");
  const themes = ["auto", "light", "dark"], toggle = document.getElementById("theme");
  const kept = () => { try { return localStorage.getItem("frhsic-theme"); } catch { return null; } };
  function theme(name) {
    document.documentElement.dataset.theme = name;
    toggle.textContent = "Theme: " + name;
    try { localStorage.setItem("frhsic-theme", name); } catch { /* a file opened from disk may have no storage */ }
  }
  theme(themes.includes(kept()) ? kept() : "auto");
  toggle.addEventListener("click", () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
  document.getElementById("print").addEventListener("click", () => window.print());
  document.getElementById("json").addEventListener("click", () => Tables.save(JSON.stringify(report, null, 1), "application/json", "audit.json"));
  const unfold = document.getElementById("unfold"), folded = Array.from(document.querySelectorAll("details"));
  unfold.addEventListener("click", () => {
    const open = folded.some((one) => !one.open), text = unfold.textContent;
    folded.forEach((one) => (one.open = open));
    unfold.textContent = unfold.dataset.other;
    unfold.dataset.other = text;
  });
  document.querySelectorAll(".table").forEach((holder) => Tables.enhance(holder, live));
  document.documentElement.dataset.ready = "yes";
})();
