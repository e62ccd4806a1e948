/** The contract of a time zone; apart from `time-zone.ts`, which pages load. */
import { z } from "zod";
import { isZone, zoneNamed } from "./time-zone.ts";

/** A time zone as it is typed; what follows a zone's clocks over the year takes it from here. */
export const zoneName = (message: string) =>
  z
    .string()
    .max(64)
    .overwrite((typed) => zoneNamed(typed) ?? typed)
    .refine(isZone, message);
