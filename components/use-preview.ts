"use client";

import { useRef, useState } from "react";
import type { ApiResult } from "#components/api.ts";

/** Nothing was typed for so long. */
const STILL_MS = 300;

/**
 * What saving would do, asked of the server while a form is filled in. An answer to what stood there before is dropped:
 * it says nothing about what stands there now.
 */
export function usePreview<T>() {
  const [preview, setPreview] = useState<T>();
  const asking = useRef<{ timer?: ReturnType<typeof setTimeout>; turn: number }>({ turn: 0 });
  return {
    preview,
    /** Calls `request` after `wait` milliseconds in which nobody asks again; it answers undefined when nothing can be told. */
    ask: (request: () => Promise<ApiResult<T>> | undefined, wait = STILL_MS) => {
      clearTimeout(asking.current.timer);
      asking.current.turn += 1;
      const { turn } = asking.current;
      asking.current.timer = setTimeout(() => {
        const asked = request();
        if (asked === undefined) return setPreview(undefined);
        void asked.then((answer) => {
          if (turn === asking.current.turn) setPreview(answer.ok ? answer.data : undefined);
        });
      }, wait);
    },
  };
}
