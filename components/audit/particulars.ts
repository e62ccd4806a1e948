/** What an event of the audit tells beside who, what and when: what was and what is, times in the reader's zone. */
import { groupsOf, type Window } from "#components/calendar/week.ts";
import { kindWords, quotaWords } from "#components/calendar/words.ts";
import {
  formatAmount,
  formatBytes,
  formatCores,
  formatDuration,
  formatExact,
  formatGpuHours,
} from "#components/format.ts";
import type { KindWindow, QuotaWindow } from "#server/contracts/sharing.ts";

type Detail = Record<string, unknown>;

/** Of what was changed `limit 40.0 → 60.0`; what an edit left as it was is not named. */
export function particulars(detail: Detail, zone: string): string {
  const { before, after, ...rest } = detail;
  if (isDetail(before) && isDetail(after)) return joined([...changes(before, after, zone), ...told(rest, zone)]);
  if (after !== undefined) return joined([change(["", before], ["", after], zone), ...told(rest, zone)]);
  const { windows, ...others } = rest;
  if (Array.isArray(before) && Array.isArray(windows))
    return joined([change(["calendar", before], ["calendar", windows], zone), ...told(others, zone)]);
  if (!isDetail(before) || !Object.keys(before).some((key) => key in rest)) return joined(told(detail, zone));
  const entries = Object.entries(rest);
  const is = Object.fromEntries(entries.filter(([key]) => key in before));
  const beside = Object.fromEntries(entries.filter(([key]) => !(key in before)));
  return joined([...changes(before, is, zone), ...told(beside, zone)]);
}

/** As an event's id is shown, for reading beside others: `ws-…fk2v6u`. */
export function shortId(id: string): string {
  const [prefix, rest = ""] = id.split("-", 2);
  return rest.length > 8 ? `${prefix}-…${rest.slice(-6)}` : id;
}

/** A fact that two fields state, such as an amount as typed and in thousandths, stands once. */
const joined = (parts: readonly string[]) => [...new Set(parts)].filter(Boolean).join(", ");
const isDetail = (value: unknown): value is Detail =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isEmpty = (value: unknown) => value === null || value === undefined || value === "";

function changes(before: Detail, after: Detail, zone: string): string[] {
  return Object.entries(after).map(([key, value]) => change([key, before[key]], [key, value], zone));
}

type Entry = [key: string, value: unknown];

/** Nothing where nothing has changed. */
function change([key, was]: Entry, [, is]: Entry, zone: string): string {
  const [from, to] = [was, is].map((value) => (isEmpty(value) ? "none" : text(key, value, zone)));
  return from === to ? "" : `${words(key)} ${from} → ${to}`.trim();
}

function told(detail: Detail, zone: string): string[] {
  return Object.entries(detail)
    .filter(([, value]) => !isEmpty(value))
    .map(([key, value]) => `${words(key)} ${text(key, value, zone)}`);
}

/** `guaranteedMilli` → `guaranteed`, `parkedBytes` → `parked`, `budgetMilliHours` → `budget`. */
function words(key: string): string {
  return key
    .replace(/(Milli|Bytes|Seconds|MilliHours)$/, "")
    .replace(/^milli$/, "amount")
    .replace(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const ID = /^[a-z]{2,5}-[a-z2-7]{26}$/;

function text(key: string, value: unknown, zone: string): string {
  if (typeof value === "number") return figure(key, value);
  if (typeof value === "string") {
    if (INSTANT.test(value)) return formatExact(value, zone);
    return ID.test(value) ? shortId(value) : value;
  }
  if (Array.isArray(value)) return calendar(value) ?? `(${value.map((each) => text(key, each, zone)).join(", ")})`;
  if (isDetail(value)) return `(${told(value, zone).join(", ")})`;
  return String(value);
}

/** With its unit, which the key names. */
function figure(key: string, value: number): string {
  if (/cpuMilli$/i.test(key)) return formatCores(value);
  if (/milli$/i.test(key)) return formatAmount(value);
  if (key.endsWith("Bytes")) return formatBytes(value);
  if (key.endsWith("MilliHours")) return `${formatGpuHours(value / 1000)} GPU-h`;
  return key.endsWith("Seconds") ? formatDuration(value * 1000) : String(value);
}

/** The entries of a calendar as its page tells them; undefined where it is none. */
function calendar(value: unknown[]): string | undefined {
  const [first] = value;
  if (first === undefined) return "none";
  if (!isDetail(first) || !("fromMinute" in first)) return undefined;
  return "kind" in first ? lines(value as KindWindow[], kindWords) : lines(value as QuotaWindow[], quotaWords);
}

function lines<W extends Window>(windows: W[], meaning: (window: W) => string): string {
  return groupsOf(windows, meaning)
    .map((group) => `${group.when}: ${group.windows[0] ? meaning(group.windows[0]) : ""}`)
    .join("; ");
}
