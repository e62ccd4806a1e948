"use client";

import { useState } from "react";
import { Field, Select } from "./field.tsx";

/** Value of the option for a type outside the pool; type names contain no `:`. */
const OTHER = ":other";

/** A GPU type: one that the pool has devices of, or, by its name, one that it does not have yet. */
export function GpuTypeField({
  types,
  value,
  onChange,
  error,
}: {
  /** Types in the pool that can be chosen here. */
  types: readonly string[];
  value: string;
  onChange: (gpuType: string) => void;
  error: string | undefined;
}) {
  const [isOther, setOther] = useState(types.length === 0);
  return (
    <>
      <Select
        label="GPU type"
        value={isOther ? OTHER : value}
        onChange={({ target }) => {
          setOther(target.value === OTHER);
          onChange(target.value === OTHER ? "" : target.value);
        }}
        error={isOther ? undefined : error}
      >
        {types.map((gpuType) => (
          <option key={gpuType} value={gpuType}>
            {gpuType}
          </option>
        ))}
        <option value={OTHER}>Another type, not in the pool yet</option>
      </Select>
      {isOther && (
        <Field
          label="Name of the GPU type"
          required
          maxLength={32}
          value={value}
          onChange={({ target }) => onChange(target.value.trim())}
          hint={
            <span className="text-warn">
              The pool has no GPU of this type. A team can borrow one once a server joins with exactly this type.
            </span>
          }
          error={error}
        />
      )}
    </>
  );
}
