/** Whether every part of the installation works, and what to do where it does not. */
import { z } from "zod";
import { instant } from "./common.ts";

export const component = z.strictObject({
  kind: z.enum(["portal", "broker", "gateway", "egress", "launcher", "database", "gpu-server", "guarantees", "orphan"]),
  name: z.string(),
  state: z.enum(["ok", "warning", "down"]),
  /** What was seen, for a person. */
  detail: z.string(),
  version: z.string().nullable(),
  /** When it last showed a sign of life. */
  seenAt: instant.nullable(),
  /** What to do; null when nothing is wrong. */
  next: z.string().nullable(),
});
export type Component = z.infer<typeof component>;
/** What broker, gateway and egress answer at `/healthz`; only the broker has launchers. */
export const processHealth = z.object({
  status: z.literal("ok"),
  version: z.string(),
  launchers: z
    .array(
      z.object({
        name: z.string(),
        isolated: z.boolean(),
        reason: z.string().optional(),
        /** Why no new workspace starts there. */
        refusal: z.object({ happened: z.string(), next: z.string() }).optional(),
        /** Which limits hold for workspaces there, and by what. */
        limits: z.object({ by: z.enum(["control-group", "watch", "none"]), sentence: z.string() }).optional(),
      }),
    )
    .optional(),
});
export type ProcessHealth = z.infer<typeof processHealth>;
/** What is wrong stands first. */
export const health = z.strictObject({ at: instant, components: z.array(component) });
export type Health = z.infer<typeof health>;
