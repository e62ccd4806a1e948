"use client";

import { useRouter } from "next/navigation";
import { lazy, useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { PoolDevice } from "#server/contracts/gpu-server.ts";

const DrainDialog = lazy(() => import("./drain-dialog.tsx"));

/** Drains one device, or lets it take leases again. */
export function DeviceActions({
  device: { id, name, drained },
}: {
  device: Pick<PoolDevice, "id" | "name" | "drained">;
}) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  if (!drained) {
    return (
      <DialogButton
        size="sm"
        aria-label={`Drain ${name}`}
        dialog={(close) => <DrainDialog what="device" id={id} name={name} onClose={close} />}
      >
        Drain
      </DialogButton>
    );
  }
  const open = async () => {
    setPending(true);
    const result = await api("POST", `/gpus/${id}/drain`, { draining: false });
    setPending(false);
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
  };
  return (
    <Button
      size="sm"
      pending={pending}
      pendingLabel="Opening"
      onClick={() => void open()}
      aria-label={`${name} takes leases again`}
    >
      Take leases again
    </Button>
  );
}
