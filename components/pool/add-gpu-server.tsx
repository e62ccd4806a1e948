"use client";

import { CircleCheck } from "lucide-react";
import { useCallback, useState } from "react";
import { api } from "#components/api.ts";
import { formatExact } from "#components/format.ts";
import { useLive } from "#components/live/use-live.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { Copyable } from "#components/ui/copy.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { FormError } from "#components/ui/field.tsx";
import type { GpuServerList, JoinToken } from "#server/contracts/gpu-server.ts";

/** A join token, and the ids of the servers in the pool before it was made. */
type Made = { token: JoinToken; before: ReadonlySet<string>; at: number };

const readServers = async () => await api<GpuServerList>("GET", "/gpu-servers");

/** Makes a one-time token, shows the command for the GPU host, and says when a server has joined. */
export function AddGpuServer() {
  const [open, setOpen] = useState(false);
  const [made, setMade] = useState<Made>();
  const [error, setError] = useState<string>();
  const [pending, setPending] = useState(false);
  const make = async () => {
    setMade(undefined);
    setError(undefined);
    setOpen(true);
    setPending(true);
    const at = Date.now();
    const servers = await readServers();
    const result = await api<JoinToken>("POST", "/gpu-servers/join-tokens", {});
    setPending(false);
    if (!result.ok) return setError(result.error.message);
    const before = new Set(servers.ok ? servers.data.servers.map(({ id }) => id) : []);
    setMade({ token: result.data, before, at });
  };
  return (
    <>
      <Button variant="primary" onClick={() => void make()}>
        Add GPU server
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        wide
        title="Add GPU server"
        description={
          made?.token.downloads === false
            ? "Build gpud on the host that has the GPUs, then run this command there."
            : "Run this command on the host that has the GPUs. It downloads gpud and joins the pool. As root, it also installs a service."
        }
      >
        <div className="flex flex-col gap-4">
          {pending && <div className="skeleton h-12" aria-busy="true" />}
          {made && <Line {...made} />}
          <FormError>{error}</FormError>
          <div className="flex justify-end">
            <Button onClick={() => setOpen(false)}>Done</Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}

function Line({ token, before, at }: Made) {
  const zone = useTimeZone();
  const [joined, setJoined] = useState<string[]>([]);
  useLive(
    "pool",
    at,
    useCallback(() => {
      void readServers().then((answer) => {
        if (!answer.ok) return;
        const fresh = answer.data.servers.filter(({ id, state }) => state === "online" && !before.has(id));
        setJoined(fresh.map(({ name }) => name));
      });
    }, [before]),
  );
  return (
    <>
      {token.warning && <p className="rounded-md bg-warn-soft px-3 py-2 text-warn">{token.warning}</p>}
      <Copyable text={token.command} label="Command to run on the GPU host" />
      <p className="text-sm text-ink-2">
        The token in it works once, expires {formatExact(token.expiresAt, zone)} and is not shown again.
      </p>
      <p role="status" className="flex items-center gap-1.5">
        {joined.length === 0 ? (
          <span className="text-ink-2">Waiting for the server to join…</span>
        ) : (
          <>
            <CircleCheck aria-hidden="true" className="size-4 text-ok" />
            {joined.join(", ")} joined the pool.
          </>
        )}
      </p>
    </>
  );
}
