/** The text of a form's field; empty when there is none, or it holds a file. */
export function formText(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}

/** An amount that is typed in GPUs, in thousandths of one. */
export function formMilli(form: FormData, name: string): number {
  return Math.round(Number(formText(form, name)) * 1000);
}
