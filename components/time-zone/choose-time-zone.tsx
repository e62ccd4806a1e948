"use client";

import { useRouter } from "next/navigation";
import { useHydrated } from "#components/live/hydrated.ts";
import { Select } from "#components/ui/field.tsx";
import { browserTimeZone, keepTimeZone } from "./browser-time-zone.ts";
import { useTimeZoneChoice } from "./time-zone-context.tsx";

/** In which zone this browser shows times and takes them. */
export function ChooseTimeZone() {
  const router = useRouter();
  const { automatic, zone } = useTimeZoneChoice();
  // The browser's list: the server's may differ.
  const zones = useHydrated() ? [...new Set(["UTC", ...Intl.supportedValuesOf("timeZone")])] : [];
  const others = zones.includes(zone) || automatic ? zones : [zone, ...zones];
  const choose = (value: string) => {
    keepTimeZone(value === "" ? { automatic: true, zone: browserTimeZone() } : { automatic: false, zone: value });
    router.refresh();
  };
  return (
    <Select
      label="Time zone"
      className="max-w-72"
      hint="Used for all times in this browser."
      value={automatic ? "" : zone}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">{`As the browser${automatic ? ` (${zone})` : ""}`}</option>
      {(others.length === 0 && !automatic ? [zone] : others).map((name) => (
        <option key={name}>{name}</option>
      ))}
    </Select>
  );
}
