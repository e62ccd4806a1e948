/** Amounts in inputs; apart from how they are read, which the browser loads, too. */
import { z } from "zod";
import { type ParsedAmount, parseAmount, parseTotal } from "./amount.ts";

const typed = (reads: (text: string) => ParsedAmount) =>
  z
    .string()
    .trim()
    .max(32, "An amount is short: 0.5, 2 or 40G.")
    .superRefine((text, check) => {
      const parsed = reads(text);
      if (!parsed.ok) check.addIssue({ code: "custom", message: parsed.reason.message });
    });

/** An amount in an input: the text as it is typed, without the spaces around it. */
export const typedAmount = typed(parseAmount);
/** What several leases have together, in an input. */
export const typedTotal = typed(parseTotal);
