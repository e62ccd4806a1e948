"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";

/** Closes a month that is over. */
export function CloseMonth({ month, total }: { month: string; total: string }) {
  const router = useRouter();
  const [asking, setAsking] = useState(false);
  const close = async () => {
    const result = await api("POST", `/costs/months/${month}/close`);
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  return (
    <>
      <Button onClick={() => setAsking(true)}>Close {month}</Button>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Close ${month}?`}
        loses={`Its costs stay at ${total}, split as they stand. Prices and names that change later change it no more, and it cannot be opened again.`}
        confirmLabel="Close the month"
        pendingLabel="Closing"
        danger={false}
        act={close}
      />
    </>
  );
}
