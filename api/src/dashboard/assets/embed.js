// A button on another site's page that opens a published agent in a frame of its own:
// <script src="https://…/embed.js" data-page="help" data-label="Ask us" data-accent="#0a58ca" async></script>
(() => {
  const script = document.currentScript;
  const page = script.dataset.page;
  if (!page) return console.error("Lectern: the script needs data-page, the last part of the published page's address.");
  const address = new URL(`embed/${encodeURIComponent(page)}`, script.src);
  const label = script.dataset.label || "Ask us";
  const accent = /^#[0-9a-f]{6}$/i.test(script.dataset.accent ?? "") ? script.dataset.accent : "#0a58ca";
  const bright = [1, 3, 5].reduce((sum, at, part) => {
    const value = parseInt(accent.slice(at, at + 2), 16) / 255;
    return sum + [0.2126, 0.7152, 0.0722][part] * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }, 0);
  // Out of reach of the site's own style sheets.
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.setAttribute("aria-expanded", "false");
  Object.assign(button.style, {
    position: "fixed", right: "1rem", bottom: "1rem", zIndex: "2147483000", padding: "0.75rem 1.25rem", border: "0",
    borderRadius: "2rem", background: accent, color: bright > 0.179 ? "#000000" : "#ffffff", font: "600 1rem system-ui, sans-serif",
    cursor: "pointer", boxShadow: "0 2px 12px rgb(0 0 0 / 30%)",
  });
  let frame;
  const toggle = () => {
    if (!frame) {
      frame = document.createElement("iframe");
      frame.src = address;
      frame.title = label;
      frame.setAttribute("sandbox", "allow-scripts allow-forms allow-same-origin allow-popups allow-popups-to-escape-sandbox");
      frame.setAttribute("allow", "clipboard-write");
      Object.assign(frame.style, {
        position: "fixed", right: "1rem", bottom: "4.75rem", zIndex: "2147483000", width: "min(26rem, calc(100vw - 2rem))",
        height: "min(40rem, calc(100vh - 7rem))", border: "1px solid #858d97", borderRadius: "0.75rem", background: "#ffffff",
        colorScheme: "light dark",
      });
      root.append(frame);
      frame.hidden = true;
    }
    frame.hidden = !frame.hidden;
    frame.style.display = frame.hidden ? "none" : "block";
    button.setAttribute("aria-expanded", String(!frame.hidden));
    button.textContent = frame.hidden ? label : "Close";
    if (!frame.hidden) frame.focus();
  };
  button.addEventListener("click", toggle);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && frame && !frame.hidden) toggle();
  });
  root.append(button);
  // In a page's head the script runs before there is a body.
  const show = () => document.body.append(host);
  if (document.body) show();
  else document.addEventListener("DOMContentLoaded", show, { once: true });
})();
