/** Why a dataset is not all in the cache of a node, for whoever looks at the workspace. */

export const LARGER_THAN_MEMORY =
  "It is larger than half of the memory that is free here; the rest is read when it is asked for.";
export const UNREADABLE_FILES = "Some of its files cannot be read.";
