// What the theme leaves out for those who use a keyboard or a screen reader.
window.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.ariaLevel = "2";
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
  const reach = () => {
    for (const part of document.querySelectorAll("article pre, .table-wrapper, .cell_output .output")) {
      if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    }
  };
  new ResizeObserver(reach).observe(document.body);
  window.addEventListener("load", reach);
});
