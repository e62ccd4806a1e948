"use client";

import { useCallback, useEffect, useRef, useState, useTransition } from "react";
import type { ApiError, ApiResult } from "#components/api.ts";

export type Submit<T> = {
  pending: boolean;
  /** The server's sentence when no single field is to blame. */
  error: string | undefined;
  /** Field name → the server's sentence. */
  fields: Record<string, string>;
  /** Runs the call; its data when it went well. What was typed stays where it is either way. */
  run: (call: () => Promise<ApiResult<T>>) => Promise<T | undefined>;
  fail: (message: string) => void;
};

/**
 * The state of a form: on its way, refused with a sentence, or at rest. `known` are the fields that show their own;
 * `unique` is the one that a conflict is about, such as a name that is taken.
 */
export function useSubmit<T>(
  known: readonly string[],
  unique?: string,
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
  const fail = useCallback((message: string) => setRefused({ code: "invalid", message, fields: {} }), []);
  const fields = refused?.code === "conflict" && unique ? { [unique]: refused.message } : (refused?.fields ?? {});
  const shown = Object.keys(fields).some((name) => known.includes(name));
  return { pending: pending || reading, error: refused && !shown ? refused.message : undefined, fields, run, fail };
}
