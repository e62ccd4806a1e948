const WHOLE = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const SCALE = new Map(Object.entries({ "": 1, ...WHOLE, ...BINARY }));
/** Divided by, as thousandths are no exact factors. */
const PARTS = new Map(Object.entries({ m: 1e3, u: 1e6, n: 1e9 }));

/** `500m`, `2`, `8Gi`, `1e3`, as the API writes amounts; 0 for none. */
export function readAmount(quantity = "0"): number {
  const [, number = "0", unit = ""] = /^([\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity) ?? [];
  const parts = PARTS.get(unit);
  return parts === undefined ? Number(number) * (SCALE.get(unit) ?? 0) : Number(number) / parts;
}

/**
 * As people read it, of the resource of this name: processors as `1.5`, bytes as `31.2Gi` or `512Mi`, else the number;
 * undefined where that is nothing. `round`: away from what would promise too much.
 */
export function formatAmount(name: string, amount: number, round: (value: number) => number): string | undefined {
  const [number, unit] = /^(memory|(ephemeral-)?storage|hugepages-.*)$/.test(name)
    ? inBytes(amount, round)
    : // Sums of fractions are off by what no cluster counts.
      [round(Math.round(amount * 1e6) / 1e3) / 1e3, ""];
  return number === 0 ? undefined : `${number}${unit}`;
}

function inBytes(amount: number, round: (value: number) => number): [number: number, unit: string] {
  const mebibytes = amount / 2 ** 20;
  const whole = round(mebibytes);
  return whole < 1024 ? [whole, "Mi"] : [round((mebibytes * 10) / 1024) / 10, "Gi"];
}
