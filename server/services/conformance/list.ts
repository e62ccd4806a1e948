import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import { type ConformanceList, conformanceRun } from "#server/contracts/conformance.ts";
import { knownGpuTypes } from "#server/services/lease/world.ts";
import recorded from "./runs.json" with { type: "json" };

const runs = z.array(conformanceRun).parse(recorded);

/** The conformance runs that this version was recorded with, and the GPU types that there are. */
export async function list(ctx: Context): Promise<ConformanceList> {
  authorize(ctx.principal, "conformance.list");
  return { runs, gpuTypes: await knownGpuTypes(ctx.db) };
}
