import { randomBytes } from "node:crypto";

/**
 * A name beside `file` for what is written before it is renamed to `file`. Each call has its own: one process may write
 * the same file twice at once.
 */
export const unfinishedName = (file: string): string => `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
