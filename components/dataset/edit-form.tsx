"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { DatasetView } from "#server/contracts/dataset.ts";
import { PrefetchCheck, readBytes, SizeField } from "./dataset-fields.tsx";

/** What is told of a dataset, and whether it is read ahead. */
export default function EditForm({ dataset, onClose }: { dataset: DatasetView; onClose: () => void }) {
  const router = useRouter();
  const { id, name, kind } = dataset;
  const known = kind === "folder" ? ["description"] : ["description", "sizeBytes"];
  const { pending, error, fields, run, version } = useEdit<DatasetView>(known, dataset.version);
  const isFolder = kind === "folder";
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const description = formText(form, "description");
    const told = { prefetch: form.get("prefetch") !== null, ...(isFolder ? {} : { sizeBytes: readBytes(form) }) };
    const done = await run(() => api("PUT", `/datasets/${id}`, { description, version, ...told }));
    if (!done) return;
    onClose();
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Edit ${name}`}
      description="Source, owner and write access cannot change. To change them, register another dataset."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <TextArea
          label="Description"
          name="description"
          maxLength={1000}
          defaultValue={dataset.description}
          error={fields.description}
        />
        {!isFolder && <SizeField bytes={dataset.sizeBytes} error={fields.sizeBytes} />}
        <PrefetchCheck defaultChecked={dataset.prefetch} />
        <FormFooter error={error} pending={pending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
