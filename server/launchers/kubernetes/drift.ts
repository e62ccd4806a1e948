/** Whether somebody has changed what we have put. */

/**
 * Whether an object of the cluster still says everything that was wanted of it. What others have added beside is no
 * change, such as the API server's defaults; one more in a list is.
 */
export function isAsPut(wanted: unknown, found: unknown): boolean {
  if (Array.isArray(wanted)) {
    const list: unknown[] = Array.isArray(found) ? found : [];
    return wanted.length === list.length && wanted.every((one, index) => isAsPut(one, list[index]));
  }
  if (typeof wanted !== "object" || wanted === null) return wanted === found;
  const has = new Map(Object.entries(found ?? {}));
  // What a watch hands over is named as the API names it, without our library's `_` before words of the language.
  return Object.entries(wanted).every(
    ([name, value]) => value === undefined || isAsPut(value, has.get(name) ?? has.get(name.replace(/^_/, ""))),
  );
}
