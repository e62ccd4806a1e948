import type { KeyboardEvent } from "react";

const controlsOf = (row: Element) => [...row.querySelectorAll<HTMLElement>("a[href], button:not(:disabled)")];

/** In a table, the up and down arrows go from a row's link or button to the same one of the next row that has any. */
export function goToRow(event: KeyboardEvent<HTMLElement>): void {
  const down = event.key === "ArrowDown";
  // A menu's button opens it by an arrow, and says that the key is taken.
  if (event.defaultPrevented || (!down && event.key !== "ArrowUp")) return;
  const from = event.target as HTMLElement;
  const row = from.closest("tbody tr");
  if (row === null || !event.currentTarget.contains(row)) return;
  const place = controlsOf(row).indexOf(from);
  if (place < 0) return;
  const step = (at: Element) => (down ? at.nextElementSibling : at.previousElementSibling);
  let next = step(row);
  while (next !== null && controlsOf(next).length === 0) next = step(next);
  if (next === null) return;
  const controls = controlsOf(next);
  event.preventDefault();
  controls[Math.min(place, controls.length - 1)]?.focus();
}
