"use client";

import { type ComponentProps, lazy } from "react";
import { DialogButton } from "#components/ui/dialog-button.tsx";

const RegisterForm = lazy(() => import("./register-form.tsx"));
const EditForm = lazy(() => import("./edit-form.tsx"));

type RegisterProps = Omit<ComponentProps<typeof RegisterForm>, "onClose">;
type EditProps = Omit<ComponentProps<typeof EditForm>, "onClose">;

/** Opens the form that makes files known as a dataset. */
export function RegisterDataset(props: RegisterProps) {
  return (
    <DialogButton variant="primary" dialog={(close) => <RegisterForm {...props} onClose={close} />}>
      Register
    </DialogButton>
  );
}

/** Opens the form that changes what is told of one. */
export function EditDataset({ dataset }: EditProps) {
  return (
    <DialogButton
      size="sm"
      aria-label={`Edit ${dataset.name}`}
      dialog={(close) => <EditForm dataset={dataset} onClose={close} />}
    >
      Edit
    </DialogButton>
  );
}
