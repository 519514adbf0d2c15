// Reloads the page when what it shows has changed, and brings new findings into it. The
// first event after connecting says what is shown now, so nothing is missed in between.
(() => {
  const shown = document.currentScript.dataset.version;
  const events = new EventSource("/_waypost/preview/events");
  events.addEventListener("site", (event) => {
    if (event.data !== shown) location.reload();
  });
  events.addEventListener("findings", async () => {
    const answer = await fetch("/_waypost/preview/findings");
    const panel = document.getElementById("waypost-findings");
    const open = panel.querySelector("details")?.open ?? true;
    panel.innerHTML = await answer.text();
    const details = panel.querySelector("details");
    if (details) details.open = open;
  });
})();
