"use client";

import { useSyncExternalStore } from "react";

let current = 0;
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

const second = () => Math.floor(Date.now() / 1000) * 1000;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    current = second();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The shared second while the timer runs; before that, the clock itself. */
function read(): number {
  return timer === undefined || current === 0 ? second() : current;
}

/** The time now in milliseconds, moving once a second; every clock on the page shares one timer. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, read, second);
}
