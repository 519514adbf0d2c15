// The question below a page: a vote is sent without leaving the page, once in each tab.
parts.push(() => {
  const form = element(".helpful");
  if (!form) return;
  const thanked = form.nextElementSibling;
  const key = `helpful:${location.pathname}`;
  const tab = (act) => { try { return act(sessionStorage); } catch { return null; } };
  if (tab((kept) => kept.getItem(key))) thanked.classList.add("shown");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    // The site is served by somebody who counts nothing.
    if (answer?.status === 404) form.remove();
    if (!answer?.ok) return;
    tab((kept) => kept.setItem(key, "1"));
    thanked.classList.add("shown");
    thanked.focus();
  });
});
