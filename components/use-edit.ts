"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { type Submit, useSubmit } from "#components/use-submit.ts";

/**
 * The state of a form that changes what others may change meanwhile, and the version to send: as it stood when the form
 * was opened. The page behind an open form follows what others save, and would send their version with what was typed
 * over older values: the conflict would be hidden. Once the person was told of it, what stands there now counts. A form
 * that stays open after it was saved says which version its answer has (`savedAs`).
 */
export function useEdit<T, V = number>(
  known: readonly string[],
  now: V,
  savedAs?: (answer: T) => V,
): Submit<T> & { version: V } {
  const router = useRouter();
  const [seen, setSeen] = useState<{ version: V } | undefined>({ version: now });
  const submit = useSubmit<T>(known, () => {
    setSeen(undefined);
    router.refresh();
  });
  const run: Submit<T>["run"] = async (call) => {
    const answer = await submit.run(call);
    if (answer !== undefined && savedAs !== undefined) setSeen({ version: savedAs(answer) });
    return answer;
  };
  return { ...submit, run, version: seen === undefined ? now : seen.version };
}
