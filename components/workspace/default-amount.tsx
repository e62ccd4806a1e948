"use client";

import { useState } from "react";
import { Field } from "#components/ui/field.tsx";
import { readAmount } from "./amount-input.ts";

/** A default amount as somebody types it. `milli` is undefined as long as it is none; `check` says so from then on. */
export function useDefaultAmount(initial: string) {
  const [text, setText] = useState(initial);
  const [checked, setChecked] = useState(false);
  const read = readAmount(text);
  return {
    text,
    setText,
    check: () => setChecked(true),
    milli: "milli" in read ? read.milli : undefined,
    problem: checked && "sentence" in read ? read.sentence : undefined,
  };
}

/** The field of a default amount; `error` is the server's. */
export function DefaultAmountField({
  amount,
  error,
  hint,
}: {
  amount: ReturnType<typeof useDefaultAmount>;
  error: string | undefined;
  hint?: string;
}) {
  return (
    <Field
      label="Default amount"
      inputMode="decimal"
      value={amount.text}
      onChange={(event) => amount.setText(event.target.value)}
      onBlur={amount.check}
      suffix="of a GPU"
      hint={hint}
      error={error ?? amount.problem}
    />
  );
}
