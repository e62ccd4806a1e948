"use client";

import { useRouter } from "next/navigation";
import type { FormEvent } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button } from "#components/ui/button.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { GpuServerView } from "#server/contracts/gpu-server.ts";

/**
 * Says where a GPU server stands, for requests that need to be near. Render it only while it is asked: what it shows
 * first is what the edit is made on.
 */
export function SetZone({ server, onClose }: { server: GpuServerView; onClose: () => void }) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run, version } = useEdit(["zone"], server.zoneVersion);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const zone = formText(new FormData(event.currentTarget), "zone").trim() || null;
    if (!(await run(() => api("PUT", `/gpu-servers/${server.id}/zone`, { zone, version })))) return;
    onClose();
    toast(zone === null ? `${server.name} is in no zone.` : `${server.name} is in zone ${zone}.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={`Zone of ${server.name}`}
      description="Requests that name a zone get GPUs of its servers only. Running leases continue."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field
          label="Zone"
          name="zone"
          maxLength={64}
          defaultValue={server.zone ?? ""}
          hint="A rack, a room or a site, for example rack-7. Leave empty if unknown"
          error={fields.zone}
        />
        <FormError>{error}</FormError>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" pending={pending} pendingLabel="Saving">
            Save zone
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
