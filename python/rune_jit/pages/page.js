"use strict";
// Pictures: the wheel zooms about the pointer, dragging moves, the buttons zoom and fit.
for (const picture of document.querySelectorAll(".picture")) {
  const svg = picture.querySelector("svg");
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = whole.slice();
  const show = () => svg.setAttribute("viewBox", view.join(" "));
  // Pixels of the screen for a unit of the picture.
  const scale = () => svg.getScreenCTM().a;
  const zoom = (factor, x, y) => {
    const least = whole[2] / 200;
    const width = Math.min(Math.max(view[2] / factor, least), whole[2] * 4);
    const by = width / view[2];
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, width, view[3] * by];
    show();
  };
  const at = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY);
    return point.matrixTransform(svg.getScreenCTM().inverse());
  };
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = at(event);
    zoom(Math.exp(-event.deltaY * 0.0015), point.x, point.y);
  }, { passive: false });
  let last = null;
  picture.addEventListener("pointerdown", (event) => {
    if (event.target.closest("a")) return;
    last = [event.clientX, event.clientY];
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    if (!last) return;
    view[0] -= (event.clientX - last[0]) / scale();
    view[1] -= (event.clientY - last[1]) / scale();
    last = [event.clientX, event.clientY];
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { last = null; });
  for (const button of picture.parentElement.querySelectorAll("button"))
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) return zoom(factor, view[0] + view[2] / 2, view[1] + view[3] / 2);
      view = whole.slice();
      show();
    });
}
// What belongs to one kernel stands out while the pointer is on a part of it.
for (const part of document.querySelectorAll("[data-kernel]")) {
  const others = () => document.querySelectorAll(".picture [data-kernel], .source [data-kernel]");
  part.addEventListener("pointerenter", () => {
    const own = part.dataset.kernel.split(" ");
    for (const other of others())
      other.classList.toggle("dimmed", !other.dataset.kernel.split(" ").some((k) => own.includes(k)));
  });
  part.addEventListener("pointerleave", () => {
    for (const other of others()) other.classList.remove("dimmed");
  });
}
