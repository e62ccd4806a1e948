"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { readDuration, writeDuration } from "#components/duration.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import { CO_TENANCY, COMPUTE_CEILING, effectOf, POLICY_TIMES, timeThatCounts } from "./policy-fields.ts";
import { PolicySizeFields, readSizeBounds } from "./policy-size-fields.tsx";

const NAMES = [
  ...POLICY_TIMES.map(({ name }) => name),
  "coTenancy",
  "computeCeiling",
  "customSizes",
  "maxCpuMilli",
  "maxMemoryBytes",
];

/** Changes a team's policy; below each field stands what it does as it is typed. */
export default function PolicyForm({
  teamId,
  teamName,
  policy,
  onClose,
}: {
  teamId: string;
  teamName: string;
  policy: TeamPolicyView;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run, version } = useEdit<TeamPolicyView, typeof policy.version>(
    NAMES,
    policy.version,
  );
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [unread, setUnread] = useState<Record<string, string>>({});
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const times = POLICY_TIMES.map(({ name }) => {
      const text = formText(form, name).trim();
      return [name, text === "" ? null : readDuration(text)] as const;
    });
    const wrong = times.filter(([, seconds]) => seconds === undefined).map(([name]) => name);
    setUnread(Object.fromEntries(wrong.map((name) => [name, "Write a time like 20m, 4h, 1h 30m or 7d."])));
    if (wrong.length > 0) return;
    const bounds = readSizeBounds(form);
    setUnread(bounds.wrong);
    if (Object.keys(bounds.wrong).length > 0) return;
    const input = {
      ...Object.fromEntries(times),
      ...bounds.input,
      coTenancy: formText(form, "coTenancy"),
      computeCeiling: formText(form, "computeCeiling"),
      version,
    };
    if (!(await run(() => api("PUT", `/teams/${teamId}/policy`, input)))) return;
    onClose();
    toast(`The policy of ${teamName} is saved.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      wide
      title={`Policy of ${teamName}`}
      description="Times like 20m, 4h, 1h 30m or 7d. Leave a field empty to use the default."
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => void submit(event)}
        onInput={(event) => {
          const { name, value } = event.target as HTMLInputElement;
          setTyped((before) => ({ ...before, [name]: value }));
        }}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          {POLICY_TIMES.map(({ name, label }) => {
            const own = policy[name];
            const text = (typed[name] ?? (own === null ? "" : writeDuration(own))).trim();
            const everywhere = timeThatCounts({ ...policy, [name]: null }, name).text;
            const seconds = readDuration(text);
            return (
              <Field
                key={name}
                label={label}
                name={name}
                defaultValue={own === null ? "" : writeDuration(own)}
                placeholder={everywhere}
                autoComplete="off"
                hint={effectOf(name, timeThatCounts({ ...policy, [name]: seconds ?? null }, name).text)}
                error={unread[name] ?? fields[name]}
              />
            );
          })}
          <PolicyChoice name="coTenancy" label="Cards" of={CO_TENANCY} policy={policy} typed={typed} errors={fields} />
          <PolicyChoice
            name="computeCeiling"
            label="Compute"
            of={COMPUTE_CEILING}
            policy={policy}
            typed={typed}
            errors={fields}
          />
          <PolicySizeFields policy={policy} errors={{ ...fields, ...unread }} />
        </div>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Save policy" />
      </form>
    </Dialog>
  );
}

/** One of a few; below it stands what the chosen one does. */
function PolicyChoice<Name extends "coTenancy" | "computeCeiling">({
  name,
  label,
  of,
  policy,
  typed,
  errors,
}: {
  name: Name;
  label: string;
  of: Record<TeamPolicyView[Name], { label: string; does: string }>;
  policy: TeamPolicyView;
  typed: Record<string, string>;
  errors: Record<string, string>;
}) {
  const chosen = (typed[name] ?? policy[name]) as TeamPolicyView[Name];
  return (
    <Select label={label} name={name} defaultValue={policy[name]} hint={of[chosen].does} error={errors[name]}>
      {Object.entries<{ label: string }>(of).map(([value, { label: text }]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </Select>
  );
}
