import type { z } from "zod";
import { invalidInput } from "#server/errors.ts";
import { inWords } from "#server/input-words.ts";

/** The input as the contract describes it, or an `invalid` error that names each wrong field. */
export function parse<S extends z.ZodType>(schema: S, raw: unknown): z.output<S> {
  const parsed = schema.safeParse(raw, { error: inWords });
  if (!parsed.success) throw invalidInput(parsed.error);
  return parsed.data;
}
