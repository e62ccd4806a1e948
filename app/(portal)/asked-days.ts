/** The days that a page's address asks for: what they are, or in a sentence what is wrong with them. */
import { clockIn, instantIn, offsetLabel } from "#server/contracts/time-zone.ts";

const DAY_MS = 86_400_000;

export type AskedDays = {
  /** As the fields show them; empty where nothing is asked, or no day. */
  from: string;
  to: string;
  /** The same as instants, the last day in it; what is not asked is left out. */
  span: { from?: string; to?: string };
  /** Why nothing can be read for them. */
  wrong: { title: string; hint: string } | undefined;
};

type Bounds = {
  now: Date;
  /** So many days are meant where no first one is asked, to the last or today; without it: all before. */
  usually?: number;
  /** So many at once. */
  most?: number;
  /** By whose clocks a day begins; the ledger's days are UTC. */
  zone?: string;
};

/** Reads `from` and `to` of an address. */
export function askedDays(
  asked: { from: string; to: string },
  { now, usually, most, zone = "UTC" }: Bounds,
): AskedDays {
  const today = clockIn(zone, now.getTime()).slice(0, 10);
  const bad = [asked.from, asked.to].find((text) => text !== "" && !isDay(text));
  const to = isDay(asked.to) ? asked.to : usually === undefined ? "" : today;
  const first = usually === undefined ? "" : dayAt(Date.parse(to) - (usually - 1) * DAY_MS);
  const from = isDay(asked.from) ? asked.from : first;
  const span = {
    ...(from && { from: instantIn(zone, `${from}T00:00`) }),
    ...(to && { to: instantIn(zone, `${dayAt(Date.parse(to) + DAY_MS)}T00:00`) }),
  };
  const wrong =
    bad === undefined ? wrongWith({ from, to, today, most, in: offsetLabel(zone, now.getTime()) }) : noDay(bad);
  return { from, to, span, wrong };
}

/** So many hours up to now, as if the days that they lie in had been asked for. */
export function lastHours(hours: number, now: Date): AskedDays {
  const [from, to] = [new Date(now.getTime() - hours * 3_600_000).toISOString(), now.toISOString()];
  return { from: from.slice(0, 10), to: to.slice(0, 10), span: { from, to }, wrong: undefined };
}

const noDay = (text: string) => ({
  title: `“${text.slice(0, 20)}” is no day`,
  hint: "Choose a day in the field, or write it like 2026-11-24.",
});

type Days = { from: string; to: string; today: string; most: number | undefined; in: string };

function wrongWith({ from, to, today, most, in: zone }: Days): AskedDays["wrong"] {
  if (from === "") return undefined;
  if (to !== "" && from > to) {
    return { title: "The time ends before it begins", hint: "Choose a first day that is not after the last." };
  }
  if (from > today)
    return { title: "This time has not come yet", hint: `It is ${today} in ${zone}: choose a day before.` };
  if (most !== undefined && Date.parse(to || today) - Date.parse(from) >= most * DAY_MS) {
    return { title: "This time is too long", hint: `Choose ${most.toLocaleString("en")} days at most.` };
  }
  return undefined;
}

const dayAt = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** A day of the calendar of these centuries: the 30th of February is none. */
function isDay(text: string): boolean {
  if (!/^[12]\d{3}-\d{2}-\d{2}$/.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00Z`);
  return Number.isFinite(at) && dayAt(at) === text;
}
