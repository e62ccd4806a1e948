"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const ProposeForm = lazy(() => import("./propose-form.tsx"));

type Props = Omit<ComponentProps<typeof ProposeForm>, "onClose">;

/** Opens the form that proposes an environment, or the next version of one. */
export function ProposeEnvironment(props: Props) {
  return (
    <DialogButton
      variant={props.like ? "secondary" : "primary"}
      dialog={(close) => <ProposeForm {...props} onClose={close} />}
    >
      {props.like ? "Propose a new version" : "Propose"}
    </DialogButton>
  );
}
