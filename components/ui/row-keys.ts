import type { KeyboardEvent } from "react";

/** What opens something by an arrow, or has arrows of its own while it is open: these keys are never a row's. */
const OWN_ARROWS =
  "[aria-haspopup='menu'], [aria-haspopup='listbox'], [role='combobox'], [role='menu'] *, [role='listbox'] *, [role='dialog'] *";

const controlsOf = (row: Element) =>
  [...row.querySelectorAll<HTMLElement>("a[href], button:not(:disabled)")].filter((each) => !each.matches(OWN_ARROWS));

/**
 * In a table, the up and down arrows go from a row's link or button to the same one of the next row that has any. A
 * menu's button opens it by an arrow and may be about to open it by the key before, so it is no stop of these.
 */
export function goToRow(event: KeyboardEvent<HTMLElement>): void {
  const down = event.key === "ArrowDown";
  if (event.defaultPrevented || (!down && event.key !== "ArrowUp")) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
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
