"use client";

import { useRouter } from "next/navigation";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { browserTimeZone, keepTimeZone } from "./browser-time-zone.ts";
import type { TimeZoneChoice } from "./time-zone.ts";

const TimeZoneContext = createContext<TimeZoneChoice>({ automatic: true, zone: "UTC" });

/** The zone that times are shown and typed in, as an IANA name. */
export function useTimeZone(): string {
  return useContext(TimeZoneContext).zone;
}

/** What the person chose, for the setting itself. */
export function useTimeZoneChoice(): TimeZoneChoice {
  return useContext(TimeZoneContext);
}

/** Gives the zone to all below. The server cannot know the browser's: it is kept for it, and the page read again. */
export function TimeZoneProvider({ choice, children }: { choice: TimeZoneChoice; children: ReactNode }) {
  const router = useRouter();
  const { automatic, zone } = choice;
  useEffect(() => {
    if (!automatic || browserTimeZone() === zone) return;
    keepTimeZone({ automatic, zone: browserTimeZone() });
    router.refresh();
  }, [automatic, zone, router]);
  return <TimeZoneContext value={choice}>{children}</TimeZoneContext>;
}
