"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formMilli, formText } from "#components/form-text.ts";
import { formatAmount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { GpuField } from "#components/ui/gpu-field.tsx";
import { useOpened } from "#components/use-opened.ts";
import { useSubmit } from "#components/use-submit.ts";
import type { WhatIfInput, WhatIfList, WhatIfView } from "#server/contracts/what-if.ts";

type Present = WhatIfList["present"][number];
export type Proposed = { days: { from: string; to: string }; types: WhatIfInput["types"] };

/** Which time is played again, and on which pool. */
export function WhatIfForm({ present, proposed }: { present: Present[]; proposed: Proposed }) {
  const router = useRouter();
  const { pending, error, fields, run } = useSubmit<WhatIfView>(["from"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const asked = await run(() => api("POST", "/what-ifs", questionOf(form, present)));
    if (asked) router.push(`/what-if?run=${asked.id}`);
  };
  return (
    <form className="mb-8 flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
      <div className="grid grid-cols-2 gap-3 sm:flex sm:flex-wrap">
        <Field
          label="From (UTC)"
          name="from"
          type="date"
          required
          defaultValue={proposed.days.from}
          error={fields.from}
          className="sm:w-44"
        />
        <Field label="To" name="to" type="date" required defaultValue={proposed.days.to} className="sm:w-44" />
      </div>
      <div className="grid items-start gap-4 md:grid-cols-2 xl:grid-cols-3">
        {present.map((type) => (
          <TypeFields
            key={type.gpuType}
            type={type}
            proposed={proposed.types.find((one) => one.gpuType === type.gpuType)}
          />
        ))}
      </div>
      <FormError>{error}</FormError>
      <div>
        <Button type="submit" variant="primary" pending={pending} pendingLabel="Asking">
          Simulate
        </Button>
      </div>
    </form>
  );
}

function TypeFields({ type, proposed }: { type: Present; proposed: Proposed["types"][number] | undefined }) {
  const { gpuType, gpus, quotas } = type;
  return (
    <fieldset className="rounded-lg border border-line bg-surface px-3.5 pt-2 pb-3.5">
      <legend className="px-1 font-medium">{gpuType}</legend>
      <Field
        label="GPUs"
        name={`gpus/${gpuType}`}
        type="number"
        min={0}
        max={10_000}
        step={1}
        required
        defaultValue={proposed?.gpus ?? gpus}
        hint={`Now ${gpus}`}
        className="w-40"
      />
      {quotas.length > 0 && <QuotaFields {...{ gpuType, quotas, proposed: proposed?.quotas ?? [] }} />}
    </fieldset>
  );
}

type QuotaFieldsProps = Pick<Present, "gpuType" | "quotas"> & {
  proposed: NonNullable<Proposed["types"][number]["quotas"]>;
};

/** There may be hundreds, so they are made when somebody looks at them. */
function QuotaFields({ gpuType, quotas, proposed }: QuotaFieldsProps) {
  const begins = proposed.length > 0;
  const { opened, watch } = useOpened(begins);
  return (
    <details {...watch} className="mt-3" open={begins}>
      <summary className="text-sm text-ink-2 hover:text-ink">Quotas</summary>
      {opened && (
        <ul className="mt-2 flex flex-col gap-3">
          {quotas.map((quota) => {
            const other = proposed.find(({ teamId }) => teamId === quota.teamId) ?? quota;
            const named = (what: string) => ({ name: `${what}/${gpuType}/${quota.teamId}`, className: "w-40" });
            return (
              <li key={quota.teamId} className="flex flex-wrap items-start gap-x-4 gap-y-2">
                <span className="w-full font-medium break-words">{quota.name}</span>
                <GpuField
                  label={`Guaranteed to ${quota.name}`}
                  {...named("guaranteed")}
                  defaultValue={other.guaranteedMilli / 1000}
                  hint={`Now ${formatAmount(quota.guaranteedMilli)}`}
                />
                <GpuField
                  label={`Limit of ${quota.name}`}
                  {...named("limit")}
                  defaultValue={other.limitMilli / 1000}
                  hint={`Now ${formatAmount(quota.limitMilli)}`}
                />
              </li>
            );
          })}
        </ul>
      )}
    </details>
  );
}

/** Quotas that stay as they are, looked at or not, keep their calendars, and are not named. */
function questionOf(form: FormData, present: Present[]): WhatIfInput {
  const DAY_MS = 24 * 3_600_000;
  const types = present.map(({ gpuType, quotas }) => ({
    gpuType,
    gpus: Number(formText(form, `gpus/${gpuType}`)),
    quotas: quotas.flatMap(({ teamId, ...now }) => {
      if (!form.has(`limit/${gpuType}/${teamId}`)) return [];
      const guaranteedMilli = formMilli(form, `guaranteed/${gpuType}/${teamId}`);
      const limitMilli = formMilli(form, `limit/${gpuType}/${teamId}`);
      const same = guaranteedMilli === now.guaranteedMilli && limitMilli === now.limitMilli;
      return same ? [] : [{ teamId, guaranteedMilli, limitMilli }];
    }),
  }));
  return {
    from: `${formText(form, "from")}T00:00:00Z`,
    // The last day is in it.
    to: new Date(Date.parse(`${formText(form, "to")}T00:00:00Z`) + DAY_MS).toISOString(),
    types,
  };
}
