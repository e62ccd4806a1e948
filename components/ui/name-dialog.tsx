"use client";

import type { FormEvent } from "react";
import type { ApiResult } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { useSubmit } from "#components/use-submit.ts";
import { Dialog } from "./dialog.tsx";
import { Field } from "./field.tsx";
import { FormFooter } from "./form-footer.tsx";

/** Asks for a workspace's name, sends it with `send`, and calls `onDone` with the answer. `name` is the proposal. */
export function NameDialog<T>({
  title,
  description,
  name,
  save,
  saving,
  send,
  onDone,
  onClose,
}: {
  title: string;
  description: string;
  name: string;
  save: string;
  saving: string;
  send: (name: string) => Promise<ApiResult<T>>;
  onDone: (answer: T) => void;
  onClose: () => void;
}) {
  const { pending, error, fields, run } = useSubmit<T>(["name"]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = formText(new FormData(event.currentTarget), "name");
    const answer = await run(() => send(typed));
    if (answer !== undefined) onDone(answer);
  };
  return (
    <Dialog open onOpenChange={onClose} title={title} description={description}>
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field label="Name" name="name" required maxLength={60} defaultValue={name} error={fields.name} />
        <FormFooter error={error} pending={pending} onCancel={onClose} save={save} saving={saving} />
      </form>
    </Dialog>
  );
}
