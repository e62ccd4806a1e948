"use client";

import { Select } from "#components/ui/field.tsx";
import type { GpuPolicy } from "#server/contracts/workspace.ts";

const CHOICES: Record<GpuPolicy, { word: string; hint: string }> = {
  ask: { word: "ask: somebody runs %gpu attach", hint: "A notebook has a GPU from %gpu attach to %gpu detach." },
  "first-use": {
    word: "on first use: attached by itself",
    hint: "The first GPU work of a notebook or program attaches the default amount, and waits for it up to 2 min.",
  },
  never: { word: "never", hint: "Nothing here borrows a GPU." },
};

/** Chooses how a workspace comes to a GPU. */
export function GpuPolicySelect(props: {
  value: GpuPolicy;
  onChange: (policy: GpuPolicy) => void;
  error?: string | undefined;
  className?: string;
}) {
  const { value, onChange, ...others } = props;
  return (
    <Select
      label="GPU policy"
      value={value}
      hint={CHOICES[value].hint}
      onChange={(event) => onChange(event.target.value as GpuPolicy)}
      {...others}
    >
      {Object.entries(CHOICES).map(([policy, { word }]) => (
        <option key={policy} value={policy}>
          {word}
        </option>
      ))}
    </Select>
  );
}
