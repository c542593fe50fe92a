// Renews what changes on a page while somebody looks at it. Without this script the page shows the same.
//
// A part marked `data-live="SECONDS"` is fetched anew from the address of the page every so many seconds, and gives way
// to its successor of the same id where they differ. What is fetched is HTML of this server, escaped as the page itself
// is, and parsed into a document in which nothing runs. A part in which somebody types or selects stays as it is; the
// focus, opened details and what was scrolled stay where they are. `data-news` says what has happened in a part: a
// screen reader says it when it changes, and nothing else.
(() => {
  "use strict";
  const LONGEST = 300; // seconds between two attempts while they fail
  const LIVE = "[data-live][id]";
  const REACHABLE = "a[href], button, summary, [tabindex]";
  let failed = 0;
  let timer = 0;
  let busy = false;

  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const parts = (root) => all(root, LIVE).filter((part) => !part.parentElement.closest(LIVE));

  // What holds the focus in the part, and what will hold it in its successor; undefined where that must not be touched.
  const successor = (part, next) => {
    const selected = document.getSelection();
    if (!selected.isCollapsed && selected.containsNode(part, true)) return undefined;
    const focused = document.activeElement;
    if (focused === document.body || !part.contains(focused)) return null;
    const same = all(next, REACHABLE)[all(part, REACHABLE).indexOf(focused)];
    return same?.outerHTML === focused.outerHTML ? same : undefined;
  };

  const keep = (part, next) => {
    const opened = all(part, "details");
    all(next, "details").forEach((each, place) => { if (opened[place]) each.open = opened[place].open; });
    const scrolled = all(part, ".scroll, pre").map((each) => each.scrollLeft);
    return () => all(next, ".scroll, pre").forEach((each, place) => { each.scrollLeft = scrolled[place] || 0; });
  };

  const swap = (part, next) => {
    if (part.isEqualNode(next)) return;
    const news = next.dataset.news || "";
    if (news && news !== part.dataset.news) document.getElementById("news").textContent = news;
    const focus = successor(part, next);
    if (focus === undefined) {
      part.dataset.news = news;
      return;
    }
    const scroll = keep(part, next);
    part.replaceWith(next);
    scroll();
    focus?.focus({ preventScroll: true });
  };

  const renew = async () => {
    const reply = await fetch(location.href, { cache: "no-store", redirect: "error" });
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    for (const part of parts(document)) {
      const next = fresh.getElementById(part.id);
      if (next) swap(part, next);
    }
    document.title = fresh.title;
  };

  const turn = async () => {
    if (busy || document.hidden) return;
    busy = true;
    try {
      await renew();
      failed = 0;
    } catch {
      failed += 1;
    }
    busy = false;
    wait();
  };

  const wait = () => {
    clearTimeout(timer);
    const every = parts(document).map((part) => Number(part.dataset.live));
    if (every.length) timer = setTimeout(turn, 1000 * Math.min(LONGEST, Math.min(...every) * 2 ** failed));
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : turn()));
  wait();
})();
