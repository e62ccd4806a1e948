"use client";

import { useState } from "react";
import { api } from "#components/api.ts";
import { formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import { Button } from "#components/ui/button.tsx";
import { Copyable } from "#components/ui/copy.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { FormError } from "#components/ui/field.tsx";
import type { JoinToken } from "#server/contracts/gpu-server.ts";

/** Makes a one-time token and shows the line to paste on the GPU host. */
export function AddGpuServer() {
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState<JoinToken>();
  const [error, setError] = useState<string>();
  const [pending, setPending] = useState(false);
  const zone = useTimeZone();
  const make = async () => {
    setToken(undefined);
    setError(undefined);
    setOpen(true);
    setPending(true);
    const result = await api<JoinToken>("POST", "/gpu-servers/join-tokens", {});
    setPending(false);
    if (result.ok) setToken(result.data);
    else setError(result.error.message);
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
        description="Run this line on the host that has the GPUs. The server appears here as soon as it has joined."
      >
        <div className="flex flex-col gap-4">
          {pending && <div className="skeleton h-12" aria-busy="true" />}
          {token && (
            <>
              <Copyable text={token.command} label="Line to run on the GPU host" />
              <p className="text-sm text-ink-2">
                The token in it works once, until {formatExact(token.expiresAt, zone)}, and is not shown again.
              </p>
            </>
          )}
          <FormError>{error}</FormError>
          <div className="flex justify-end">
            <Button onClick={() => setOpen(false)}>Done</Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}
