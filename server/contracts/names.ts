/** The order of names, the same in tables and in what the API answers. */

const order = new Intl.Collator("en", { numeric: true });

/** Compares two names as people count: `gpu-2` before `gpu-10`, and capitals beside small letters. */
export const compareNames = (a: string, b: string): number => order.compare(a, b);
