"use client";

import { MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { IconButton } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { GpuServerView } from "#server/contracts/gpu-server.ts";
import { SetZone } from "./set-zone.tsx";

/** Where it stands, drain, take leases again, remove. */
export function ServerActions({ server }: { server: GpuServerView }) {
  const router = useRouter();
  const toast = useToast();
  const [asking, setAsking] = useState<"drain" | "remove" | "zone">();
  const draining = server.state === "draining";

  const drain = async (wanted: boolean) => {
    const result = await api("POST", `/gpu-servers/${server.id}/drain`, { draining: wanted });
    router.refresh();
    return result.ok ? undefined : result.error.message;
  };
  const remove = async () => {
    const result = await api("DELETE", `/gpu-servers/${server.id}`);
    router.refresh();
    if (!result.ok) return result.error.message;
    toast(`${server.name} is removed from the pool.`);
    return undefined;
  };

  return (
    <>
      <Menu
        trigger={
          <IconButton label={`More for ${server.name}`} className="size-7">
            <MoreHorizontal aria-hidden="true" className="size-4" />
          </IconButton>
        }
      >
        <MenuItem onSelect={() => setAsking("zone")}>Set zone</MenuItem>
        {draining ? (
          <MenuItem
            onSelect={() =>
              void drain(false).then((refused) => {
                if (refused) toast(refused, "bad");
              })
            }
          >
            Take leases again
          </MenuItem>
        ) : (
          <MenuItem onSelect={() => setAsking("drain")}>Drain</MenuItem>
        )}
        <MenuItem danger onSelect={() => setAsking("remove")}>
          Remove server
        </MenuItem>
      </Menu>
      <SetZone server={server} open={asking === "zone"} onOpenChange={(open) => setAsking(open ? "zone" : undefined)} />
      <Confirm
        open={asking === "drain"}
        onOpenChange={(open) => setAsking(open ? "drain" : undefined)}
        title={`Drain ${server.name}?`}
        loses={`${running(server)} It takes no new lease until you let it again.`}
        confirmLabel="Drain server"
        pendingLabel="Draining"
        danger={false}
        act={() => drain(true)}
      />
      <Confirm
        open={asking === "remove"}
        onOpenChange={(open) => setAsking(open ? "remove" : undefined)}
        title={`Remove ${server.name}?`}
        loses={
          server.leaseCount > 0
            ? `${plural(server.leaseCount, "lease")} on it ${server.leaseCount === 1 ? "ends" : "end"} now: those notebooks get an error at their next GPU call and lose what they hold in its memory. Its key is revoked; it can join again with a new token.`
            : "Its key is revoked, and memory parked on it is dropped. It can join again with a new token."
        }
        confirmLabel="Remove server"
        pendingLabel="Removing"
        act={remove}
      />
    </>
  );
}

function running(server: GpuServerView): string {
  if (server.leaseCount === 0) return "Nothing runs on it.";
  return `${plural(server.leaseCount, "lease")} on it ${server.leaseCount === 1 ? "goes" : "go"} on to the end.`;
}
