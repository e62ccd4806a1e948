import { Button } from "#components/ui/button.tsx";
import { FormError } from "#components/ui/field.tsx";

/**
 * The foot of a form in a dialog: why it was refused, the way out, and the button that sends it. With `remove`, another
 * button on the left that asks whether to remove what the form edits.
 */
export function FormFooter({
  error,
  pending,
  onCancel,
  save = "Save",
  saving = "Saving",
  remove,
}: {
  error: string | undefined;
  pending: boolean;
  onCancel: () => void;
  save?: string;
  saving?: string;
  remove?: { label: string; ask: () => void } | undefined;
}) {
  return (
    <>
      <FormError>{error}</FormError>
      <div className="flex flex-wrap justify-end gap-2">
        {remove && (
          <Button className="mr-auto" onClick={remove.ask}>
            {remove.label}
          </Button>
        )}
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" variant="primary" pending={pending} pendingLabel={saving}>
          {save}
        </Button>
      </div>
    </>
  );
}
