/** What is typed into the fields of a size. */

const readNumber = (text: string): number | undefined => {
  const trimmed = text.trim().replace(",", ".");
  return /^\d+(\.\d+)?$/.test(trimmed) && Number(trimmed) > 0 ? Number(trimmed) : undefined;
};

/** `0.5` → 500 thousandths of a core; undefined: that is no number. */
export function readCores(text: string): number | undefined {
  const cores = readNumber(text);
  return cores === undefined ? undefined : Math.round(cores * 1000);
}

/** `1.5` → the bytes of so many GiB, whole MiB; undefined: that is no number. */
export function readGib(text: string): number | undefined {
  const gib = readNumber(text);
  return gib === undefined ? undefined : Math.round(gib * 1024) * 2 ** 20;
}
