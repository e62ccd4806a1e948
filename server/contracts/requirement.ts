/**
 * One way only to read each character: `!` belongs to a version except before a single `=`, where it begins `!=`. So a
 * text that does not match is refused in time linear in its length.
 */
const REQUIREMENT =
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[A-Za-z0-9._,\s-]*\]\s*)?(?:(?:===|==|~=|!=|<=|>=|<|>)\s*(?:[A-Za-z0-9.*+_-]|!(?!=(?!=)))+\s*(?:,\s*)?)*(?:;[A-Za-z0-9_.'" <>=!()~,*+-]*)?$/;

/**
 * Whether a line is one of pip's requirements: a package's name with extras, versions and a marker. Options, addresses
 * and paths are not: every package comes from the machine's package index.
 */
export function isRequirement(line: string): boolean {
  return REQUIREMENT.test(line);
}
