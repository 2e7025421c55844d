/* What happens when the page opens. */
(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const audit = report.audit, live = document.getElementById("live");
  const names = { score: audit.subject.score_name || audit.subject.name };

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

  document.querySelectorAll(".table").forEach((holder) => Tables.enhance(holder, live));
  const before = (name) => report.before && report.before.attributes.find((a) => a.name === name);
  for (const kind of ["first", "curve"]) document.querySelectorAll(`[data-figure="${kind}"]`).forEach((holder) => {
    const attribute = audit.attributes[Number(holder.dataset.attribute)];
    Figures.curve(holder, attribute, before(attribute.name), names, kind === "first");
  });
  const means = { decision_gdp: "Share at or above the threshold", error_gdp: "Share of wrong decisions", calibration_gdp: "Target less score" };
  document.querySelectorAll('[data-figure="along"]').forEach((holder) => {
    const attribute = audit.attributes[Number(holder.dataset.attribute)], key = holder.dataset.measures;
    Figures.along(holder, attribute, attribute.all_rows.curves[key], means[key]);
  });
  document.querySelectorAll('[data-figure="within"]').forEach((holder) => {
    const { group, attribute, level } = holder.dataset, { levels, within } = audit.groups[Number(group)];
    const curves = within[attribute].map((one) => one.curves.gdp);
    Figures.along(holder, { name: attribute }, curves[levels.indexOf(level)], "Mean score", curves.filter(Boolean));
  });
  document.querySelectorAll('[data-figure="strength"]').forEach((holder) => Figures.strength(holder, audit.attributes[Number(holder.dataset.attribute)].all_rows));
  const map = document.querySelector('[data-figure="tradeoff"]');
  if (map) Figures.tradeoff(map, report.tradeoff, JSON.parse(map.closest("section").dataset.axes));

  const links = new Map(Array.from(document.querySelectorAll("nav a"), (link) => [link.hash.slice(1), link]));
  const sections = Array.from(document.querySelectorAll("main > section"));
  let asked = false;
  function mark() {
    asked = false;
    const reached = sections.filter((section) => section.getBoundingClientRect().top <= innerHeight * 0.3), now = (reached.pop() || sections[0]).id;
    links.forEach((link, id) => (id === now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  }
  addEventListener("scroll", () => { if (!asked) { asked = true; requestAnimationFrame(mark); } }, { passive: true });
  mark();
  document.documentElement.dataset.ready = "yes";
})();
