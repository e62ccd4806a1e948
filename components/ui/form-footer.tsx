import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";

/** The foot of a form in a dialog: why it was refused, the way out, and the button that sends it. */
export function FormFooter({
  error,
  pending,
  onCancel,
  save = "Save",
  saving = "Saving",
}: {
  error: string | undefined;
  pending: boolean;
  onCancel: () => void;
  save?: string;
  saving?: string;
}) {
  return (
    <>
      <FormError>{error}</FormError>
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" variant="primary" pending={pending} pendingLabel={saving}>
          {save}
        </Button>
      </div>
    </>
  );
}
