/** Weeks as calendars see them: minutes since Monday 00:00, windows that may run over midnight and the week's end. */

export type Window = { fromMinute: number; toMinute: number };

const HOUR = 60;
export const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
export const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;

/** How long a window holds; one that ends where it begins holds the whole week. */
function lengthOf({ fromMinute, toMinute }: Window): number {
  return (toMinute - fromMinute + WEEK) % WEEK || WEEK;
}

/** `510` → `08:30`. */
export function clock(minute: number): string {
  const ofDay = minute % DAY;
  return `${String(Math.floor(ofDay / HOUR)).padStart(2, "0")}:${String(ofDay % HOUR).padStart(2, "0")}`;
}

/** `08:30` → 510; nothing when it is no time of day. */
export function readClock(text: string): number | undefined {
  const [, hours, minutes] = /^(\d\d):(\d\d)$/.exec(text) ?? [];
  if (hours === undefined || minutes === undefined) return undefined;
  const minute = Number(hours) * HOUR + Number(minutes);
  return Number(minutes) < HOUR && minute < DAY ? minute : undefined;
}

/** One window for each day; an end that is not after the beginning lies on the next day. */
export function windowsOn(days: readonly number[], from: number, to: number): Window[] {
  return days.map((day) => ({
    fromMinute: day * DAY + from,
    toMinute: ((to > from ? day : day + 1) * DAY + to) % WEEK,
  }));
}

/** What lies on each day of the week, in minutes of that day. */
export function segmentsOf<W extends Window>(windows: readonly W[]): { window: W; from: number; to: number }[][] {
  return DAYS.map((_, day) =>
    windows.flatMap((window) => {
      const end = window.fromMinute + lengthOf(window);
      // What runs over the week's end lies on its first days too.
      return [0, WEEK].flatMap((shift) => {
        const from = Math.max(day * DAY + shift, window.fromMinute);
        const to = Math.min((day + 1) * DAY + shift, end);
        return from < to ? [{ window, from: from - day * DAY - shift, to: to - day * DAY - shift }] : [];
      });
    }),
  );
}

/** Compared with the plain state: more, less, or neither. */
export type Look = "more" | "less" | "same";
/** A part of a day, in minutes of the day, as a picture of a week shows it. `short`: the text of a narrow block. */
export type Block = { key: string; from: number; to: number; text: string; short: string; look: Look };
export type WeekDay = { name: string; blocks: Block[] };

/** The lane of each block, for blocks in the order of their begin: the first lane that is free then. */
export function lanesOf(blocks: readonly Pick<Block, "from" | "to">[]): number[] {
  const ends: number[] = [];
  const lanes: number[] = [];
  for (const { from, to } of blocks) {
    const free = ends.findIndex((end) => end <= from);
    const lane = free === -1 ? ends.length : free;
    ends[lane] = to;
    lanes.push(lane);
  }
  return lanes;
}

/** The days of a calendar. A narrow block has the number of its line in `groupsOf`. */
export function daysOfWindows<W extends Window>(
  windows: readonly W[],
  text: (window: W) => string,
  look: (window: W) => Look,
): WeekDay[] {
  const lines = groupsOf(windows, text);
  const segments = segmentsOf(windows);
  return DAYS.map((name, day) => ({
    name,
    blocks: (segments[day] ?? [])
      .sort((a, b) => a.from - b.from)
      .map(({ window, from, to }) => ({
        ...{ key: `${windows.indexOf(window)} ${from}`, from, to, text: text(window), look: look(window) },
        short: String(lines.findIndex((line) => line.windows.includes(window)) + 1),
      })),
  }));
}

/** The windows that overlap another window. */
export function overlapping<W extends Window>(windows: readonly W[]): ReadonlySet<W> {
  const days = segmentsOf(windows);
  const meets = (one: { from: number; to: number }, other: { from: number; to: number }) =>
    one.from < other.to && other.from < one.to;
  return new Set(
    days.flatMap((day) =>
      day
        .filter((one) => day.some((other) => other.window !== one.window && meets(one, other)))
        .map(({ window }) => window),
    ),
  );
}

/** Windows of equal hours and meaning, shown as one line. A duplicate window is a line of its own. */
export type Group<W extends Window> = { key: string; when: string; windows: W[] };

export function groupsOf<W extends Window>(windows: readonly W[], meaning: (window: W) => string): Group<W>[] {
  const groups = new Map<string, W[]>();
  for (const window of windows) {
    const meant = `${window.fromMinute % DAY} ${lengthOf(window)} ${meaning(window)}`;
    const takes = (key: string) => !groups.get(key)?.some(({ fromMinute }) => fromMinute === window.fromMinute);
    let key = meant;
    while (!takes(key)) key += " again";
    groups.set(key, [...(groups.get(key) ?? []), window]);
  }
  return [...groups].map(([key, same]) => ({ key, when: whenOf(same), windows: same }));
}

function whenOf(same: readonly Window[]): string {
  const [first] = same;
  if (first === undefined) return "";
  if (lengthOf(first) === WEEK) return "all week";
  const days = same.map(({ fromMinute }) => Math.floor(fromMinute / DAY));
  if (lengthOf(first) > DAY) {
    return same.map((one) => `${at(one.fromMinute)} to ${at(one.toMinute)}`).join(", ");
  }
  const next = first.toMinute % DAY <= first.fromMinute % DAY && first.toMinute % DAY !== 0 ? " (next day)" : "";
  const to = first.toMinute % DAY === 0 ? "24:00" : clock(first.toMinute);
  return `${daysOf(days)} ${clock(first.fromMinute)} to ${to}${next}`;
}

const at = (minute: number) => `${DAYS[Math.floor(minute / DAY)] ?? ""} ${clock(minute)}`;

/** `[0, 1, 2, 4]` → `Mon to Wed, Fri`. */
function daysOf(days: readonly number[]): string {
  const sorted = [...new Set(days)].sort((a, b) => a - b);
  if (sorted.length === 7) return "Every day";
  const runs: number[][] = [];
  for (const day of sorted) {
    const run = runs.at(-1);
    if (run?.at(-1) === day - 1) run.push(day);
    else runs.push([day]);
  }
  const name = (day: number | undefined) => (day === undefined ? "" : (DAYS[day] ?? ""));
  return runs
    .flatMap((run) => {
      if (run.length === 1) return name(run[0]);
      return run.length === 2 ? run.map(name) : `${name(run[0])} to ${name(run.at(-1))}`;
    })
    .join(", ");
}
