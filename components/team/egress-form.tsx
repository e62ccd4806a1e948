"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import type { EgressPolicy, EgressPolicyView } from "#server/contracts/egress.ts";
import { ALWAYS_CLOSED, EGRESS_MODES, ON_A_CLUSTER, readEntries } from "./egress-words.ts";

const MODES = ["all", "list", "none"] as const;

/** Changes a team's outgoing network policy: one of three modes, and a list with one entry per line. */
export default function EgressForm({
  teamId,
  teamName,
  policy,
  onCluster,
  onClose,
}: {
  teamId: string;
  teamName: string;
  policy: EgressPolicyView;
  /** Whether workspaces run on a Kubernetes cluster, which enforces no names. */
  onCluster: boolean;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, run, version } = useEdit<EgressPolicyView, number>([], policy.version);
  const [mode, setMode] = useState<EgressPolicy["mode"]>(policy.mode);
  const [text, setText] = useState(policy.allow.join("\n"));
  const [errors, setErrors] = useState<string[]>([]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = readEntries(text);
    setErrors(read.errors);
    if (read.errors.length > 0) return;
    const input = { mode, allow: read.entries, version };
    if (!(await run(() => api("PUT", `/teams/${teamId}/egress-policy`, input)))) return;
    onClose();
    toast(`The outgoing network policy of ${teamName} is saved.`);
    router.refresh();
  };
  return (
    <Dialog
      open
      onOpenChange={onClose}
      wide
      title={`Outgoing network of ${teamName}`}
      description="Destinations that workspaces of the team may connect to. A change applies to new connections at once."
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <fieldset className="flex flex-col gap-2">
          <legend className="mb-1 text-sm font-medium">Mode</legend>
          {MODES.map((each) => (
            <label key={each} className="flex cursor-pointer items-start gap-2">
              <input
                type="radio"
                name="mode"
                value={each}
                checked={mode === each}
                onChange={() => setMode(each)}
                className="mt-1 size-4 shrink-0 accent-accent"
              />
              <span className="min-w-0">
                <span className="block">{EGRESS_MODES[each].label}</span>
                <span className="block text-sm text-ink-2">{EGRESS_MODES[each].does}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <TextArea
          label="Allowed destinations"
          name="allow"
          rows={6}
          value={text}
          onChange={(event) => setText(event.target.value)}
          spellCheck={false}
          autoCapitalize="none"
          hint={EGRESS_MODES[mode].list}
          error={errors.length === 0 ? undefined : errors.join("\n")}
        />
        <p className="text-sm text-ink-2">
          {ALWAYS_CLOSED}
          {onCluster && ` ${ON_A_CLUSTER}`}
        </p>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Save outgoing network" />
      </form>
    </Dialog>
  );
}
