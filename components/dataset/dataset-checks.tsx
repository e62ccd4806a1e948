import { Check } from "#components/ui/field.tsx";
import { accessAndSize, type DatasetChoice } from "./dataset-choice.ts";

/** One check for each dataset; one that the launcher cannot mount says so and which can. */
export function DatasetChecks({
  choices,
  launcher,
  chosen,
  onChange,
}: {
  choices: readonly DatasetChoice[];
  launcher: string;
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
}) {
  return (
    <div className="grid gap-x-6 gap-y-2.5 sm:grid-cols-2">
      {choices.map((each) => {
        const refusal = each.refusals[launcher];
        const checked = chosen.has(each.id);
        return (
          <Check
            key={each.id}
            label={each.name}
            name="datasets"
            value={each.id}
            checked={checked}
            // What is chosen already can always be taken out.
            disabled={refusal !== undefined && !checked}
            onChange={({ currentTarget }) => {
              const others = [...chosen].filter((id) => id !== each.id);
              onChange(new Set(currentTarget.checked ? [...others, each.id] : others));
            }}
            hint={
              refusal ?? (
                <>
                  {each.description && <span className="block">{each.description}</span>}
                  {accessAndSize(each)}
                </>
              )
            }
          />
        );
      })}
    </div>
  );
}
