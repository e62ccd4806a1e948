"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useRef, useState } from "react";
import { api } from "#components/api.ts";
import { formMilli, formText } from "#components/form-text.ts";
import { formatAmount } from "#components/format.ts";
import { Confirm, Dialog } from "#components/ui/dialog.tsx";
import { Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { GpuField } from "#components/ui/gpu-field.tsx";
import { GpuTypeField } from "#components/ui/gpu-type-field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import { usePreview } from "#components/use-preview.ts";
import type { QuotaEffects, QuotaView, TeamView } from "#server/contracts/team.ts";
import { EffectsOfQuota } from "./effects-of-quota.tsx";

const GPU_TYPE = /^[a-z0-9][a-z0-9-]*$/;

/** The fields as the API takes them; an empty one sets no bound. */
function readQuota(form: FormData) {
  const number = (name: string) => Number(formText(form, name));
  const optional = (name: string) => (formText(form, name) === "" ? null : formMilli(form, name));
  return {
    guaranteedMilli: formMilli(form, "guaranteed"),
    limitMilli: formMilli(form, "limit"),
    weight: number("weight"),
    priority: number("priority"),
    personMilli: optional("person"),
    largestMilli: optional("largest"),
    budgetMilliHours: optional("budget"),
  };
}

/** Changes what a team may borrow of a GPU type, or adds a type to it; what saving would do stands below the fields. */
export default function QuotaForm({
  teamId,
  teamName,
  quota,
  types = [],
  onClose,
}: {
  teamId: string;
  teamName: string;
  quota?: QuotaView;
  /** For a new quota: types in the pool for which the team has no quota. */
  types?: readonly string[];
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const [gpuType, setGpuType] = useState(quota?.gpuType ?? types[0] ?? "");
  const [isRemoving, setRemoving] = useState(false);
  const { pending, error, fields, run, fail, version } = useEdit<TeamView>(
    [
      ...(quota ? [] : ["gpuType"]),
      "guaranteedMilli",
      "limitMilli",
      "weight",
      "priority",
      "personMilli",
      "largestMilli",
      "budgetMilliHours",
    ],
    quota?.version ?? 0,
  );
  const { preview: effects, ask } = usePreview<QuotaEffects>();
  const form = useRef<HTMLFormElement>(null);
  const askEffects = (ofType = gpuType) => {
    ask(() => {
      if (!form.current?.checkValidity() || !GPU_TYPE.test(ofType)) return undefined;
      return api("POST", `/teams/${teamId}/quotas/${ofType}/preview`, readQuota(new FormData(form.current)));
    });
  };
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = readQuota(new FormData(event.currentTarget));
    if (!GPU_TYPE.test(gpuType)) return fail("A GPU type is a short lower-case word, e.g. soft or h200.", "gpuType");
    const saved = await run(() => api("PUT", `/teams/${teamId}/quotas/${gpuType}`, { ...typed, version }));
    if (!saved) return;
    onClose();
    toast(`The quota of ${teamName} for ${gpuType} is saved.`);
    router.refresh();
  };
  const remove = async () => {
    const result = await api("DELETE", `/teams/${teamId}/quotas/${gpuType}`, { version });
    if (!result.ok) return result.error.message;
    toast(`The ${gpuType} quota of ${teamName} is removed.`);
    router.refresh();
    return undefined;
  };
  if (isRemoving) {
    return (
      <Confirm
        open
        onOpenChange={onClose}
        title={`Remove the ${gpuType} quota of ${teamName}?`}
        loses={`The team can no longer borrow ${gpuType}. Its calendar, reservations and requests for this type are removed as well. Its past usage stays in the accounts.`}
        confirmLabel="Remove quota"
        pendingLabel="Removing"
        act={remove}
      />
    );
  }
  // The form already shows the error of the submitted values; do not repeat it.
  const isTold = effects !== undefined && effects.refusal !== null && [error, ...Object.values(fields)].some(Boolean);
  const bound = { required: false, min: 0.001 };
  const inGpus = (milli: number | null | undefined) => (milli === null || milli === undefined ? "" : milli / 1000);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={quota ? `Quota of ${teamName} for ${quota.gpuType}` : `New quota of ${teamName}`}
      description={
        quota
          ? `Now ${formatAmount(quota.guaranteedMilli)} guaranteed, limit ${formatAmount(quota.limitMilli)}, ${formatAmount(quota.usedMilli)} ${quota.gpuType} in use. What runs goes on when a limit is lowered.`
          : "What the team may borrow of a GPU type."
      }
    >
      <form
        ref={form}
        className="flex flex-col gap-4"
        onSubmit={(event) => void submit(event)}
        onInput={() => askEffects()}
      >
        {!quota && (
          <GpuTypeField
            types={types}
            value={gpuType}
            onChange={(next) => {
              setGpuType(next);
              askEffects(next);
            }}
            error={fields.gpuType}
          />
        )}
        <div className="grid grid-cols-2 gap-4">
          <GpuField
            label="Guaranteed"
            name="guaranteed"
            defaultValue={(quota?.guaranteedMilli ?? 0) / 1000}
            hint="Never taken back"
            error={fields.guaranteedMilli}
          />
          <GpuField
            label="Limit"
            name="limit"
            defaultValue={(quota?.limitMilli ?? 1000) / 1000}
            hint="At most at once"
            error={fields.limitMilli}
          />
          <Field
            label="Priority"
            name="priority"
            type="number"
            step={1}
            min={-100}
            max={100}
            required
            defaultValue={quota?.priority ?? 0}
            hint="Higher gets spare GPUs first"
            error={fields.priority}
          />
          <Field
            label="Weight"
            name="weight"
            type="number"
            step={1}
            min={1}
            max={1000}
            required
            defaultValue={quota?.weight ?? 1}
            hint="2 gets twice as much as 1"
            error={fields.weight}
          />
          <GpuField
            label="Limit per person"
            name="person"
            {...bound}
            defaultValue={inGpus(quota?.personMilli)}
            hint="Empty: the team's limit"
            error={fields.personMilli}
          />
          <GpuField
            label="Largest request"
            name="largest"
            {...bound}
            defaultValue={inGpus(quota?.largestMilli)}
            hint="The guarantee must fit leases of this size"
            error={fields.largestMilli}
          />
          <GpuField
            label="Budget"
            name="budget"
            required={false}
            defaultValue={inGpus(quota?.budgetMilliHours)}
            suffix="GPU-h"
            hint="Per month. Empty: no budget"
            error={fields.budgetMilliHours}
          />
        </div>
        <EffectsOfQuota effects={isTold ? undefined : effects} gpuType={gpuType} />
        <FormFooter
          error={error}
          pending={pending}
          onCancel={onClose}
          save="Save quota"
          remove={quota && { label: "Remove quota", ask: () => setRemoving(true) }}
        />
      </form>
    </Dialog>
  );
}
