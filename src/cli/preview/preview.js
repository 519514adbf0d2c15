// Reloads the page when what it shows has changed, and brings new diagnostics into it. The
// first event after connecting says what is shown now, so nothing is missed in between.
(() => {
  const shown = document.currentScript.dataset.version;
  let events;
  // A browser opens only six connections to a server, so a hidden page holds none.
  const follow = () => {
    events?.close();
    if (document.hidden) return;
    events = new EventSource("/_waypost/preview/events");
    events.addEventListener("site", (event) => {
      if (event.data !== shown) location.reload();
    });
    events.addEventListener("diagnostics", async () => {
      const response = await fetch("/_waypost/preview/diagnostics");
      const panel = document.getElementById("waypost-diagnostics");
      const open = panel.querySelector("details")?.open ?? true;
      panel.innerHTML = await response.text();
      const details = panel.querySelector("details");
      if (details) details.open = open;
    });
  };
  document.addEventListener("visibilitychange", follow);
  follow();
})();
