"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { formatPrice } from "#components/format.ts";
import { Confirm, Dialog } from "#components/ui/dialog.tsx";
import { Field, Select } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { GpuPriceList } from "#server/contracts/cost.ts";

/** Sets what a GPU type costs. */
export default function PriceForm({
  gpuType,
  currency,
  price,
  onClose,
}: {
  gpuType: string;
  currency: string;
  price?: { basis: "hour" | "month"; amount: number; version?: number | undefined };
  onClose: () => void;
}) {
  const router = useRouter();
  const { pending, error, fields, run, fail, version } = useEdit<GpuPriceList, number | undefined>(
    ["amount", "basis"],
    price ? price.version : 0,
  );
  const [isRemoving, setRemoving] = useState(false);
  const remove = async () => {
    const result = await api("DELETE", `/costs/prices/${gpuType}`, { version });
    if (!result.ok) return result.error.message;
    router.refresh();
    return undefined;
  };
  if (isRemoving) {
    return (
      <Confirm
        open
        onOpenChange={onClose}
        title={`Remove the price of ${gpuType}?`}
        loses={`Hours of ${gpuType} have no price in this month and in all other open months. Closed months stay as they are.`}
        confirmLabel="Remove price"
        pendingLabel="Removing"
        act={remove}
      />
    );
  }
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const amount = Number(formText(form, "amount"));
    if (!Number.isFinite(amount)) return fail("The amount is a number, for example 2.15.");
    const done = await run(() => api("PUT", `/costs/prices/${gpuType}`, { basis: form.get("basis"), amount, version }));
    if (!done) return;
    onClose();
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`What ${gpuType} costs`}
      description={
        price
          ? `Now ${formatPrice(price.amount, currency)} ${price.basis === "hour" ? "per GPU-hour" : "per month for all GPUs"}; for this month and every other that is not closed.`
          : "For this month and every other that is not closed."
      }
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Select label="Price" name="basis" defaultValue={price?.basis ?? "hour"} error={fields.basis}>
          <option value="hour">of one GPU for an hour</option>
          <option value="month">of all its hardware for a month</option>
        </Select>
        <Field
          label="Amount"
          name="amount"
          inputMode="decimal"
          required
          defaultValue={price?.amount ?? ""}
          suffix={currency}
          error={fields.amount}
        />
        <FormFooter
          error={error}
          pending={pending}
          onCancel={onClose}
          save="Save price"
          remove={price && { label: "Remove price", ask: () => setRemoving(true) }}
        />
      </form>
    </Dialog>
  );
}
