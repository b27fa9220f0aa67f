// Tables that are wider than the screen scroll, also with the keyboard. The theme adds their wrappers after it has loaded.
addEventListener("load", () => setTimeout(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
}, 200));
