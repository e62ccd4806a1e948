"use client";

import { useState } from "react";
import { Field } from "#components/ui/field.tsx";
import { parseAmount } from "#server/contracts/amount.ts";

/** A default amount as somebody types it. `parsed` is undefined as long as it is none; `check` says so from then on. */
export function useDefaultAmount(initial: string) {
  const [text, setText] = useState(initial);
  const [checked, setChecked] = useState(false);
  const read = parseAmount(text);
  return {
    text,
    setText,
    check: () => setChecked(true),
    parsed: read.ok ? read.amount : undefined,
    problem: checked && !read.ok ? read.reason.message : undefined,
  };
}

/** The field of a default amount; `error` is the server's. */
export function DefaultAmountField({
  amount,
  error,
  hint = "0.5 (of a GPU), 2 (GPUs) or 40G (GPU memory)",
}: {
  amount: ReturnType<typeof useDefaultAmount>;
  error: string | undefined;
  hint?: string;
}) {
  return (
    <Field
      label="Default amount"
      autoComplete="off"
      value={amount.text}
      onChange={(event) => amount.setText(event.target.value)}
      onBlur={amount.check}
      hint={hint}
      error={error ?? amount.problem}
    />
  );
}
