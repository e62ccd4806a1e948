"use client";

import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { Copyable } from "#components/ui/copy.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { OpenSampleOutput } from "#server/contracts/user.ts";

/** Opens a second window as the sample user, to see the pages as a data scientist does. */
export function OpenSample() {
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const [link, setLink] = useState<string>();
  const open = async () => {
    // Made within the click, else the browser holds the window back.
    const opened = window.open("about:blank", "_blank", "popup,width=1280,height=860");
    setPending(true);
    const result = await api<OpenSampleOutput>("POST", "/users/sample/open", {});
    setPending(false);
    if (!result.ok) {
      opened?.close();
      toast(result.error.message, "bad");
    } else if (result.data.needsPrivateWindow || !opened) {
      opened?.close();
      setLink(result.data.url);
    } else {
      opened.opener = null;
      opened.location.replace(result.data.url);
    }
  };
  return (
    <>
      <Button pending={pending} pendingLabel="Opening" onClick={() => void open()}>
        Open as a sample user
      </Button>
      <Dialog
        open={link !== undefined}
        onOpenChange={(next) => {
          if (!next) setLink(undefined);
        }}
        title="Open as a sample user"
        description="Open this address in a private window within a minute: in this one it would sign you out. It works once."
      >
        {link && <Copyable text={link} label="Address of the sample user's window" />}
      </Dialog>
    </>
  );
}
