import { Button } from "#components/ui/button.tsx";
import { Field } from "#components/ui/field.tsx";

export type AuditQuestion = { who: string; did: string; what: string; from: string; to: string };

/** By whom, which action, to what, and on which days of the reader's. An ordinary form: the address holds the question, and `kept`. */
export function AuditFilter({ question, kept }: { question: AuditQuestion; kept: Record<string, string> }) {
  return (
    <search className="mb-4 print:hidden">
      <form method="get" className="grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap">
        {Object.entries(kept).map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} />
        ))}
        <Field label="Who" name="who" type="search" maxLength={100} defaultValue={question.who} className="sm:w-52" />
        <Field
          label="Action, e.g. lease.end"
          name="did"
          type="search"
          maxLength={59}
          defaultValue={question.did}
          className="sm:w-44"
        />
        <Field
          label="To what"
          name="what"
          type="search"
          maxLength={100}
          defaultValue={question.what}
          className="sm:w-52"
        />
        <Field label="From" name="from" type="date" defaultValue={question.from} className="sm:w-40" />
        <Field label="To" name="to" type="date" defaultValue={question.to} className="sm:w-40" />
        <Button type="submit" className="h-9">
          Show
        </Button>
      </form>
    </search>
  );
}
