const DECIMAL = ["", "k", "M", "G", "T", "P"];
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** `500m`, `2`, `8Gi`, `1e3`, as the API writes amounts; 0 for none. */
export function readAmount(quantity = "0"): number {
  const [, number = "0", unit = ""] = /^([\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(quantity) ?? [];
  if (unit === "m") return Number(number) / 1000;
  const scale = BINARY.includes(unit) ? 1024 ** BINARY.indexOf(unit) : 1000 ** DECIMAL.indexOf(unit);
  return Number(number) * scale;
}
