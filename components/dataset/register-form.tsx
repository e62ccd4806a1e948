"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Check, Field, Select, TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useSubmit } from "#components/use-submit.ts";
import type { DatasetKind, DatasetView } from "#server/contracts/dataset.ts";
import { PrefetchCheck, readBytes, SizeField } from "./dataset-fields.tsx";
import { KINDS, readAttributes } from "./source-words.ts";

const EVERYBODY = "everybody";

/** Which files, whose they are, and what workspaces may do with them. */
export default function RegisterForm({
  teams,
  isAdmin,
  onClose,
}: {
  /** For which whoever registers may do so. */
  teams: { id: string; name: string }[];
  isAdmin: boolean;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const [kind, setKind] = useState<DatasetKind>("folder");
  const { pending, error, fields, run } = useSubmit<DatasetView>([
    ...["name", "description", "teamId", "sizeBytes", "source", "source.path", "source.server", "source.driver"],
    ...["source.attributes", "source.claim"],
  ]);
  const kinds: DatasetKind[] = isAdmin ? ["folder", "nfs", "s3", "volume"] : ["folder", "volume"];
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const whose = formText(form, "teamId");
    const made = await run(() =>
      api("POST", "/datasets", {
        name: formText(form, "name"),
        description: formText(form, "description"),
        ...(whose === EVERYBODY ? {} : { teamId: whose }),
        source: sourceOf(kind, form),
        writable: form.get("writable") !== null,
        prefetch: form.get("prefetch") !== null,
        sizeBytes: kind === "folder" ? null : readBytes(form),
      }),
    );
    if (!made) return;
    toast(`${made.name} is registered${kind === "folder" ? " and being measured" : ""}.`);
    onClose();
    router.refresh();
  };
  return (
    <Dialog open onOpenChange={onClose} title="Register a dataset" description={KINDS[kind].means} wide>
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label="Name"
            name="name"
            required
            maxLength={40}
            autoComplete="off"
            spellCheck={false}
            hint="Its folder in a workspace: ~/datasets/name"
            error={fields.name}
          />
          <Select label="For" name="teamId" error={fields.teamId} hint="Who may choose it for a workspace">
            {teams.map((team) => (
              <option key={team.id} value={team.id}>
                team {team.name}
              </option>
            ))}
            {isAdmin && <option value={EVERYBODY}>everybody</option>}
          </Select>
          <Select
            label="Kind"
            name="kind"
            value={kind}
            onChange={({ currentTarget }) => setKind(kinds.find((each) => each === currentTarget.value) ?? "folder")}
          >
            {kinds.map((each) => (
              <option key={each} value={each}>
                {KINDS[each].name}
              </option>
            ))}
          </Select>
          {kind !== "folder" && <SizeField error={fields.sizeBytes} />}
        </div>
        <SourceFields kind={kind} fields={fields} />
        <TextArea label="Description" name="description" maxLength={1000} error={fields.description} />
        <Check
          label="Workspaces may write to it"
          name="writable"
          hint="Otherwise it is mounted read-only. Changes by one workspace are visible in all of them."
        />
        <PrefetchCheck defaultChecked />
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Register" saving="Registering" />
      </form>
    </Dialog>
  );
}

function SourceFields({ kind, fields }: { kind: DatasetKind; fields: Record<string, string> }) {
  const plain = { required: true, autoComplete: "off", spellCheck: false } as const;
  if (kind === "folder") {
    const wrong = fields["source.path"] ?? fields.source;
    return <Field label="Folder" name="path" placeholder="/data/imagenet" {...plain} error={wrong} />;
  }
  if (kind === "volume") {
    return <Field label="Claim" name="claim" {...plain} error={fields["source.claim"] ?? fields.source} />;
  }
  if (kind === "nfs") {
    return (
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Server" name="server" {...plain} error={fields["source.server"] ?? fields.source} />
        <Field label="Path" name="path" placeholder="/export/imagenet" {...plain} error={fields["source.path"]} />
      </div>
    );
  }
  return (
    <>
      <Field
        label="CSI driver"
        name="driver"
        placeholder="s3.csi.aws.com"
        {...plain}
        error={fields["source.driver"] ?? fields.source}
      />
      <TextArea
        label="Attributes"
        name="attributes"
        required
        spellCheck={false}
        placeholder="bucketName=imagenet"
        hint="As the driver wants them, one name=value a line; no keys"
        error={fields["source.attributes"]}
      />
      <TextArea
        label="Mount options"
        name="mountOptions"
        spellCheck={false}
        placeholder="uid=1000"
        hint="One per line. Workspaces run as user 1000"
      />
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Secret, namespace" name="secretNamespace" autoComplete="off" spellCheck={false} />
        <Field label="Secret, name" name="secretName" autoComplete="off" spellCheck={false} />
      </div>
    </>
  );
}

function sourceOf(kind: DatasetKind, form: FormData) {
  const text = (name: string) => formText(form, name).trim();
  if (kind === "folder") return { kind, path: text("path") };
  if (kind === "nfs") return { kind, server: text("server"), path: text("path") };
  if (kind === "volume") return { kind, claim: text("claim") };
  const [namespace, name] = [text("secretNamespace"), text("secretName")];
  return {
    kind,
    driver: text("driver"),
    attributes: readAttributes(text("attributes")),
    mountOptions: text("mountOptions").split("\n").filter(Boolean),
    ...(namespace === "" && name === "" ? {} : { secret: { namespace, name } }),
  };
}
