"use client";

import { type ReactNode, useState } from "react";
import { cx } from "#components/format.ts";
import { Field } from "#components/ui/field.tsx";
import { sizeInWords } from "#server/contracts/size-words.ts";
import type { ChosenSize } from "#server/contracts/workspace-size.ts";
import { firstChoice, type SizeChoices } from "./size-choice.ts";
import { readCores, readGib } from "./size-words.ts";

export type SizeState = {
  /** As the API takes it; undefined: something typed is no number, or nothing is offered. */
  size: ChosenSize | undefined;
  /** Says beside the fields what is wrong with them; whether it can be sent. */
  check: () => boolean;
  fields: { choices: SizeChoices; chosen: string | null; cores: string; memory: string; checked: boolean };
  set: { choose: (name: string | null) => void; cores: (text: string) => void; memory: (text: string) => void };
};

/** The size that a form asks for: what was chosen in it, else `asked` where that can be had, else the default. */
export function useSize(choices: SizeChoices, asked: ChosenSize | undefined): SizeState {
  // Undefined: nobody has chosen yet; null: numbers.
  const [name, setName] = useState<string | null>();
  const first = firstChoice(choices, asked);
  const begun = typeof first === "object" ? first : typeof asked === "object" ? asked : undefined;
  const [cores, setCores] = useState(begun ? String(begun.cpuMilli / 1000) : "");
  const [memory, setMemory] = useState(begun ? String(begun.memoryBytes / 2 ** 30) : "");
  const [checked, setChecked] = useState(false);
  const possible = name === null ? choices.custom !== null : isOffered(choices, name);
  const wanted = name !== undefined && possible ? name : typeof first === "object" ? null : (first ?? undefined);
  /** The numbers begin with those of the size that was chosen before them. */
  const choose = (next: string | null) => {
    const before = choices.sizes.find((size) => size.name === wanted);
    if (next === null && before !== undefined && cores === "" && memory === "") {
      setCores(String(before.cpuMilli / 1000));
      setMemory(String(before.memoryBytes / 2 ** 30));
    }
    setName(next);
  };
  const [cpuMilli, memoryBytes] = [readCores(cores), readGib(memory)];
  const own = cpuMilli === undefined || memoryBytes === undefined ? undefined : { cpuMilli, memoryBytes };
  return {
    size: wanted === null ? own : wanted,
    check: () => {
      setChecked(true);
      return wanted !== null || own !== undefined;
    },
    fields: { choices, chosen: wanted === undefined ? "" : wanted, cores, memory, checked },
    set: { choose, cores: setCores, memory: setMemory },
  };
}

const isOffered = ({ sizes }: SizeChoices, name: string | undefined) =>
  sizes.some((size) => size.name === name && !size.tooLarge);

/** The sizes that are offered, as a list to choose one from; below it the numbers, for those who may choose them. */
export function SizeFields({ state, error }: { state: SizeState; error?: string | undefined }) {
  const { fields, set } = state;
  const { sizes, custom, most } = fields.choices;
  return (
    <fieldset>
      <legend className="mb-2 text-sm font-medium">Size</legend>
      <div className="divide-y divide-line overflow-hidden rounded-lg border border-line-strong bg-surface">
        {sizes.map(({ id, name, description, tooLarge, ...size }) => (
          <Choice
            key={id}
            value={name}
            chosen={fields.chosen === name}
            disabled={tooLarge}
            onChoose={() => set.choose(name)}
            words={name}
            figures={sizeInWords(size)}
          >
            {tooLarge && most ? `Larger than available here (${sizeInWords(most)})` : description}
          </Choice>
        ))}
        {custom && (
          <Choice
            value=""
            chosen={fields.chosen === null}
            onChoose={() => set.choose(null)}
            words="Custom"
            figures={`up to ${sizeInWords(custom)}`}
          >
            Cores and memory as you say
          </Choice>
        )}
      </div>
      {fields.chosen === null && (
        <div className="mt-3 grid max-w-md grid-cols-2 gap-4">
          <Field
            label="Cores"
            inputMode="decimal"
            autoComplete="off"
            value={fields.cores}
            onChange={(event) => set.cores(event.target.value)}
            error={fields.checked && readCores(fields.cores) === undefined ? "A number like 2 or 0.5." : undefined}
          />
          <Field
            label="Memory"
            suffix="GiB"
            inputMode="decimal"
            autoComplete="off"
            value={fields.memory}
            onChange={(event) => set.memory(event.target.value)}
            error={fields.checked && readGib(fields.memory) === undefined ? "A number like 8 or 1.5." : undefined}
          />
        </div>
      )}
      {error && (
        <p role="alert" className="mt-1.5 text-sm text-bad">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function Choice({
  value,
  chosen,
  disabled = false,
  onChoose,
  words,
  figures,
  children,
}: {
  value: string;
  chosen: boolean;
  disabled?: boolean;
  onChoose: () => void;
  words: string;
  figures: string;
  children: ReactNode;
}) {
  return (
    <label
      className={cx(
        "flex gap-3 px-4 py-2.5 has-focus-visible:outline-2 has-focus-visible:-outline-offset-2 has-focus-visible:outline-accent",
        disabled ? "text-ink-2" : "cursor-pointer hover:bg-hover",
      )}
    >
      <input
        type="radio"
        name="size"
        value={value}
        checked={chosen}
        disabled={disabled}
        onChange={onChoose}
        className="mt-1 size-4 shrink-0 accent-accent focus-visible:outline-none"
      />
      <span className="flex min-w-0 grow flex-col justify-between gap-x-4 sm:flex-row">
        <span className="min-w-0">
          <span className="font-medium">{words}</span>
          {children && <span className="block text-sm text-ink-2">{children}</span>}
        </span>
        <span className="figures">{figures}</span>
      </span>
    </label>
  );
}
