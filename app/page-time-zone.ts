import { cookies } from "next/headers";
import { readTimeZone, type TimeZoneChoice, timeZoneCookie } from "#components/time-zone/time-zone.ts";

/** In which zone this browser's person reads times, and whether it was chosen. */
export async function timeZoneChoice(): Promise<TimeZoneChoice> {
  const kept = (await cookies()).get(timeZoneCookie)?.value;
  return readTimeZone(kept);
}

/** The zone for what the server writes itself; components of the browser ask `useTimeZone`. */
export async function pageTimeZone(): Promise<string> {
  return (await timeZoneChoice()).zone;
}
