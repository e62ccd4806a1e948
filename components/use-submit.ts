import { useCallback, useEffect, useRef, useState, useTransition } from "react";
import type { ApiError, ApiResult } from "#components/api.ts";

export type Submit<T> = {
  pending: boolean;
  /** What the server says of no single field, or of one that this form does not have. */
  error: string | undefined;
  /** Field name → the server's sentence. */
  fields: Record<string, string>;
  /** Runs the call; its data when it went well. What was typed stays where it is either way. */
  run: (call: () => Promise<ApiResult<T>>) => Promise<T | undefined>;
  /** Refuses what was typed before it is sent; with a field's name it stands there. */
  fail: (message: string, field?: string) => void;
};

/** What stands at a form as a whole: a refusal that names no field, and each sentence of a field that shows none. */
export function errorOf({ message, fields }: ApiError, known: readonly string[]): string | undefined {
  const all = Object.entries(fields);
  if (all.length === 0) return message;
  const elsewhere = all.filter(([name]) => !known.includes(name));
  if (elsewhere.length === 0) return undefined;
  return [...new Set(elsewhere.map(([, sentence]) => sentence))].join(" ");
}

/** The state of a form: on its way, refused with a sentence, or at rest. `known` are the fields that show their own now. */
export function useSubmit<T>(
  known: readonly string[],
  /** Called when somebody else has changed it meanwhile, to read how it is now: the form waits for that. */
  onConflict?: () => void,
): Submit<T> {
  const [pending, setPending] = useState(false);
  const [reading, read] = useTransition();
  const [refused, setRefused] = useState<ApiError>();
  const again = useRef(onConflict);
  useEffect(() => {
    again.current = onConflict;
  });
  const run = useCallback(async (call: () => Promise<ApiResult<T>>) => {
    setPending(true);
    setRefused(undefined);
    const result = await call();
    setPending(false);
    if (result.ok) return result.data;
    setRefused(result.error);
    if (result.error.code === "conflict") read(() => again.current?.());
    return undefined;
  }, []);
  const fail = useCallback((message: string, field?: string) => {
    setRefused({ code: "invalid", message, fields: field === undefined ? {} : { [field]: message } });
  }, []);
  const error = refused && errorOf(refused, known);
  return { pending: pending || reading, error, fields: refused?.fields ?? {}, run, fail };
}
