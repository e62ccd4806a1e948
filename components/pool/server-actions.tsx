"use client";

import { MoreHorizontal } from "lucide-react";
import { useRouter } from "next/navigation";
import { lazy, Suspense, useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { IconButton } from "#components/ui/button.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Menu, MenuItem } from "#components/ui/menu.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { GpuServerView } from "#server/contracts/gpu-server.ts";
import { SetZone } from "./set-zone.tsx";

const DrainDialog = lazy(() => import("./drain-dialog.tsx"));

/** Where it stands, drain, take leases again, remove. */
export function ServerActions({ server }: { server: GpuServerView }) {
  const router = useRouter();
  const toast = useToast();
  const [asking, setAsking] = useState<"drain" | "remove" | "zone">();
  const draining = server.state === "draining";

  const open = async () => {
    const result = await api("POST", `/gpu-servers/${server.id}/drain`, { draining: false });
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
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
          <MenuItem onSelect={() => void open()}>Take leases again</MenuItem>
        ) : (
          <MenuItem onSelect={() => setAsking("drain")}>Drain</MenuItem>
        )}
        <MenuItem danger onSelect={() => setAsking("remove")}>
          Remove server
        </MenuItem>
      </Menu>
      {asking === "zone" && <SetZone server={server} onClose={() => setAsking(undefined)} />}
      {asking === "drain" && (
        <Suspense>
          <DrainDialog what="server" id={server.id} name={server.name} onClose={() => setAsking(undefined)} />
        </Suspense>
      )}
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
