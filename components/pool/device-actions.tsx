"use client";

import { MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { lazy, Suspense, useState } from "react";
import { api } from "#components/api.ts";
import { Button, IconButton } from "#components/ui/button.tsx";
import { DialogButton } from "#components/ui/dialog-button.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { PoolDevice } from "#server/contracts/gpu-server.ts";

const DrainDialog = lazy(() => import("./drain-dialog.tsx"));
const SetKind = lazy(() => import("./set-kind.tsx"));

type Props = { device: Pick<PoolDevice, "id" | "name" | "kind" | "drained"> };

/** Drains one device, or lets it take leases again; and says what it is. */
export function DeviceActions({ device }: Props) {
  const [asking, setAsking] = useState(false);
  return (
    <span className="inline-flex items-center gap-1">
      <DrainOrOpen device={device} />
      <Menu
        trigger={
          <IconButton label={`More for ${device.name}`} className="size-7">
            <MoreHorizontal aria-hidden="true" className="size-4" />
          </IconButton>
        }
      >
        <MenuItem onSelect={() => setAsking(true)}>Set kind</MenuItem>
      </Menu>
      {asking && (
        <Suspense>
          <SetKind device={device} onClose={() => setAsking(false)} />
        </Suspense>
      )}
    </span>
  );
}

function DrainOrOpen({ device: { id, name, drained } }: Props) {
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
      aria-label={`Take leases again: ${name}`}
    >
      Take leases again
    </Button>
  );
}
