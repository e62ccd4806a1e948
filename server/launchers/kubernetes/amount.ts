const DECIMAL = ["", "k", "M", "G", "T", "P"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** `500m`, `2`, `8Gi`, `1e3`, as the API writes amounts; 0 for none. */
export function readAmount(quantity = "0"): number {
  const [, number = "0", unit = ""] = /^([\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity) ?? [];
  if (unit === "m") return Number(number) / 1000;
  const scale = BINARY.includes(unit) ? 1024 ** BINARY.indexOf(unit) : 1000 ** DECIMAL.indexOf(unit);
  return Number(number) * scale;
}

/**
 * As people read it, of the resource of this name: processors as `1.5`, bytes as `31.2Gi` or `512Mi`, else the number.
 * `round`: away from what would promise too much.
 */
export function formatAmount(name: string, amount: number, round: (value: number) => number): string {
  if (!/^(memory|(ephemeral-)?storage|hugepages-.*)$/.test(name)) return String(Math.round(amount * 1000) / 1000);
  const gibibytes = amount / 2 ** 30;
  return gibibytes < 1 ? `${round(gibibytes * 1024)}Mi` : `${round(gibibytes * 10) / 10}Gi`;
}
