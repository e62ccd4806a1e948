"use client";

import { useRouter } from "next/navigation";
import { useCallback } from "react";
import { createPace } from "./pace.ts";
import { useLive } from "./use-live.ts";

let render: () => void = () => undefined;
/** One page in a tab: whoever follows for it shares its pace. */
const wake = createPace(() => render());

/** What [`LiveRefresh`] is in the browser: `seconds` after the last refresh at the soonest, together with what is due. */
export function Follow({ topics, seconds, since }: { topics: string; seconds: number; since: number }) {
  const router = useRouter();
  const refresh = useCallback(() => {
    render = () => router.refresh();
    wake(seconds);
  }, [router, seconds]);
  useLive(topics, since, refresh);
  return null;
}
