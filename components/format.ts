/** How figures read on every page: amounts in GPUs, memory in binary units, times short and exact. */
import { clockIn, offsetLabel } from "#server/contracts/time-zone.ts";

/** `500` → `0.5`, `1000` → `1.0`, `125` → `0.125`. */
export function formatAmount(milli: number): string {
  const text = (milli / 1000).toFixed(3).replace(/0{1,2}$/, "");
  return text;
}

/** Thousandths of a core: `250` → `0.25 cores`, `1000` → `1.00 cores`. */
export function formatCores(milli: number): string {
  return `${(milli / 1000).toFixed(2)} cores`;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Bytes in the largest unit that leaves at least one whole: `4294967296` → `4.0 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** A stretch of time, two units at most: `48 s`, `12 min`, `1 h 05 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A running clock for steps: `0:07`, `2:41`, `1:02:09`. */
export function formatClock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const s = String(seconds % 60).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${s}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${s}`;
}

/** `in 4 min`, `12 min ago`, `just now`; one unit is enough, the exact time is on hover. */
export function formatRelative(at: number, now: number): string {
  const distance = now - at;
  const seconds = Math.floor(Math.abs(distance) / 1000);
  if (seconds < 5) return "just now";
  // Future times are rounded: an end in a day stays "in 24 h" for a while. Past times are rounded down.
  const whole = distance > 0 ? Math.floor : Math.round;
  const text =
    seconds < 3600
      ? formatDuration(seconds * 1000)
      : seconds < 48 * 3600
        ? `${whole(seconds / 3600)} h`
        : `${whole(seconds / 86_400)} d`;
  return distance > 0 ? `${text} ago` : `in ${text}`;
}

/** The exact instant in a time zone, to the second: `2026-11-21 11:33:41 UTC+1`. */
export function formatExact(iso: string, zone: string): string {
  const at = Date.parse(iso);
  return `${clockIn(zone, at).replace("T", " ")} ${offsetLabel(zone, at)}`;
}

/** `1 workspace`, `3 workspaces`, `1,204 workspaces`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** With so many digits behind the point; kept, as making a format takes many times as long as using it. */
const decimals = [0, 1, 2, 3].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

/** Hours of a whole GPU: `0.004`, `0.42`, `12.5`, `1,204`; the column or label names the unit. */
export function formatGpuHours(hours: number): string {
  const digits = hours > 0 && hours < 0.1 ? 3 : hours < 10 ? 2 : hours < 1000 ? 1 : 0;
  return decimals[digits]?.format(hours) ?? String(hours);
}

/** A mark of an axis, to as many digits as its steps need: `0`, `500`, `1,000`; `0.0`, `0.5`, `1.0`. */
export function formatMark(value: number, step: number): string {
  const digits = [0, 1, 2].find((each) => Math.abs(step * 10 ** each - Math.round(step * 10 ** each)) < 1e-9) ?? 3;
  return decimals[digits]?.format(value) ?? String(value);
}

/** A price per GPU-hour or the like, to its last digit: `€2.15`, `€0.0042`. */
export function formatPrice(amount: number, currency: string): string {
  return amount.toLocaleString("en", { style: "currency", currency, maximumFractionDigits: 6 });
}

/** A part of a whole: `43 %`; without a whole there is no part. */
export function formatShare(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((part / whole) * 100)} %` : "–";
}

/** A change as part of what was before: `+8 %`, `-12 %`. */
export function formatChange(before: number, after: number): string {
  const percent = Math.round(((after - before) / before) * 100);
  return `${percent > 0 ? "+" : ""}${percent} %`;
}

/** A whole number: `1,204`. */
export function formatCount(count: number): string {
  return decimals[0]?.format(count) ?? String(count);
}

const moneys = new Map<string, Intl.NumberFormat>();

/** Hundredths of a currency's unit: `€1,204.50`. */
export function formatMoney(cents: number, currency: string): string {
  const format = moneys.get(currency) ?? new Intl.NumberFormat("en", { style: "currency", currency });
  moneys.set(currency, format);
  return format.format(cents / 100);
}

/** Joins class names, leaving out what is not set. */
export function cx(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}
