"use client";

import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { useToast } from "#components/ui/toast.tsx";

/** Says on every page that nothing here is real, and takes it away. */
export function SampleDataBanner({ mayRemove }: { mayRemove: boolean }) {
  const toast = useToast();
  const [state, setState] = useState<"there" | "leaving" | "gone">("there");
  const remove = async () => {
    setState("leaving");
    const result = await api("DELETE", "/sample-data");
    if (!result.ok) {
      toast(result.error.message, "bad");
      setState("there");
      return;
    }
    setState("gone");
    await untilStartedAgain();
    // Another installation: nothing of this page holds there.
    window.location.replace(new URL("/", window.location.href));
  };
  return (
    <div
      role="status"
      className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-warn-soft px-4 py-1.5 text-sm text-warn"
    >
      {state === "gone" ? (
        <p>The sample data are gone. Your own portal starts at this address; the terminal shows its set-up link.</p>
      ) : (
        <p>
          <strong className="font-medium">Sample data:</strong> none of these people, servers and leases exist, and
          nothing can be launched.
        </p>
      )}
      {mayRemove && state !== "gone" && (
        <Button size="sm" pending={state === "leaving"} pendingLabel="Removing" onClick={() => void remove()}>
          Remove the sample data
        </Button>
      )}
    </div>
  );
}

/** The portal goes away and comes back, with nobody to send events meanwhile: what answers before it has gone does not count. */
async function untilStartedAgain(): Promise<void> {
  let wasAway = false;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const answers = await fetch("/healthz", { cache: "no-store" }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (answers && wasAway) return;
    wasAway ||= !answers;
  }
}
