/** The person's time zone: what is kept of it. */
import { isZone } from "#server/contracts/time-zone.ts";

export const timeZoneCookie = "sluice-time-zone";

/** `automatic` follows the browser; otherwise the person chose the zone. */
export type TimeZoneChoice = { automatic: boolean; zone: string };

const AUTOMATIC = "auto:";

/** What the cookie says. Without one, or with a zone that is not known here: UTC, until the browser tells its own. */
export function readTimeZone(value: string | undefined): TimeZoneChoice {
  const automatic = value === undefined || value.startsWith(AUTOMATIC);
  const zone = automatic ? value?.slice(AUTOMATIC.length) : value;
  return zone !== undefined && isZone(zone) ? { automatic, zone } : { automatic: true, zone: "UTC" };
}

/** The cookie's value, which `readTimeZone` reads. */
export function writeTimeZone({ automatic, zone }: TimeZoneChoice): string {
  return automatic ? `${AUTOMATIC}${zone}` : zone;
}
